"""One run on disk: train, resume, predict, audit."""
