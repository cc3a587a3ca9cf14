"""``python -m selftrain``."""

from selftrain.cli import main

if __name__ == "__main__":
    main()
