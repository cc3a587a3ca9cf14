"""``python -m selftrain_lite``: the command line."""

from selftrain_lite.cli import main

main()
