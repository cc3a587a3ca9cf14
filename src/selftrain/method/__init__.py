"""A method as data: scores, losses, selection, recipes."""
