"""What every script here has in common: five seeds, 16 labels a class, at most 1,000 test rows."""

SEEDS = (12, 21, 42, 87, 100)
SHOTS = 16
TEST = 1000
