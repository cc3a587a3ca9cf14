"""From files to rows, a clean pool and a split. Nothing here imports torch."""
