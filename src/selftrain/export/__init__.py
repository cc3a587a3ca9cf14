"""A model that leaves home: the folder that other programs read, without torch or without us.

``folder.export`` is the one door; read it first.
"""
