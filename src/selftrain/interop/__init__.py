"""Files of annotation tools: pseudo labels that go out to be checked, labels that come back."""
