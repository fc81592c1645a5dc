"""What the serving table compares with: each a small service as its users would write it, run in its own environment.

Nothing here imports Espalier. The model is scikit-learn's tree, read from the file that ``PEER_MODEL`` names; what a
constant answer is stands in the file that ``PEER_ANSWER`` names.
"""
