"""The service under fire: real processes, faults at random moments, and an oracle that counts what was promised.

python -m tests.chaos          the long form, as `make chaos` runs it; --help lists what can be chosen
pytest tests/chaos             the short form, as `make check-all` runs it

databases.py   an SQLite file, or a PostgreSQL cluster of its own, each on a small disk that can be filled
system.py      the web server and the workers, which can be killed, halted and started again
load.py        clients who ask, train, prune, compare and cancel, and remember what they were promised
oracle.py      whether each promise was kept, read from the database and over HTTP
faults.py      FAULTS: what is done to the system while the load is on
campaign.py    each fault in turn, and the table of what came of it
"""
