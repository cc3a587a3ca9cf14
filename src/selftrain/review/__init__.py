"""The local page where a person checks pseudo labels and labels what is most worth it."""
