"""Encoder + tuning + reader = Classifier.

``backbone`` loads a pretrained encoder, ``pel`` tunes it, ``heads`` and ``prompt`` read it,
``build`` puts them together, ``card`` and ``saved`` write the result to disk and read it back.
``fast`` gives the same answers in less time.
"""
