"""Peers of the serving table: small services as their users would write them, each run in its own environment.

Nothing here imports Espalier. ``PEER_MODEL`` names the file of the model, scikit-learn's tree; ``PEER_ANSWER`` names
the file of the constant answer.
"""
