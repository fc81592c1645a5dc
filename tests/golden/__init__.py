"""Model documents that were written once: every later reader must understand them, and write them back byte for byte.

`MODEL.v1.json` is the document in format version 1, `MODEL.v1.txt` its text rendering. A golden that was released is
never written again; a new format version adds files of its own, made by `python -m tests.golden.write v2`.
"""
