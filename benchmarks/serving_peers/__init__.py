"""Peers of the serving table: small services, written as a user of the framework would write them.

Nothing here imports Espalier. ``PEER_MODEL`` names the file of scikit-learn's tree, and ``PEER_ANSWER`` the file of the
constant answer.
"""
