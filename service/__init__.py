"""The service: decision trees trained, pruned and asked over HTTP; its worker and its command line.

Every environment variable, its default, and what it sets. Legal values stand in `service.settings`.

    ESPALIER_DATABASE_URL      sqlite:///var/espalier.db  where everything is kept; the folder of an SQLite file is made
    ESPALIER_HOST              127.0.0.1                  the address that the web server listens on
    ESPALIER_PORT              8080                       the port that the web server listens on
    ESPALIER_AUTH              none                       who may call: those with keys, or everybody on loopback (none)
    ESPALIER_ADMIN_KEY         random                     the first key where keys are on; a random one is printed once
    ESPALIER_PROXIES           0                          proxies in front whose X-Forwarded-* headers are believed
    ESPALIER_PATH_PREFIX       /                          the path below which all paths lie
    ESPALIER_CORS_ORIGINS      none                       origins whose pages may call the service from a browser
    ESPALIER_WEB_WORKERS       2                          web processes
    ESPALIER_WEB_THREADS       16                         threads of each web process
    ESPALIER_WEB_PINNING       off                        web processes each on one core: faster where little else runs
    ESPALIER_LOG_FORMAT        auto                       form of log lines; auto: text on a terminal, else json
    ESPALIER_LOG_LEVEL         warning                    how grave a line must be
    ESPALIER_LOG_REQUESTS      off                        a log line for every request, at the level info
    ESPALIER_METRICS           on                         whether figures are counted, and shown at /metrics
    ESPALIER_TRACES            off                        whether spans of requests and jobs are sent, as OTEL_* say
    ESPALIER_LEASE_SECONDS     15                         how long a silent worker keeps its job before another takes it
    ESPALIER_JOB_SECONDS       3600                       time limit of one attempt at a job
    ESPALIER_JOB_MEMORY_MB     4096                       memory limit of one attempt at a job, in MiB resident
    ESPALIER_JOB_ATTEMPTS      3                          attempts at a job before it is given up as dead
    ESPALIER_DECISIONS         durable                    how answers are logged: before they go, behind, not
    ESPALIER_RETENTION_DAYS    0                          days that decisions are kept, unless a model says; 0: all
    ESPALIER_JOB_DAYS          0                          days that ended jobs are kept; 0: for ever
    ESPALIER_REPLAY_SECONDS    86400                      how long what an Idempotency-Key was answered is kept
    ESPALIER_MAX_BODY_MB       64                         largest body, in MiB; of data sets only of JSON
    ESPALIER_MAX_UPLOAD_MB     1024                       largest data set or file of rows, in MiB, packed or not
    ESPALIER_MAX_ROWS          2000000                    most rows of a data set
    ESPALIER_MAX_COLUMNS       2000                       most columns of a data set
    ESPALIER_MAX_CELLS         100000000                  most cells of a data set, rows times columns
    ESPALIER_MAX_CELL_CHARS    10000                      longest text in a cell, in characters
    ESPALIER_READER_MEMORY_MB  1024                       memory of a process that reads Parquet or Arrow, in MiB
    ESPALIER_MAX_NODES         1000000                    most nodes of a tree that is kept
    ESPALIER_MAX_JOBS          1000                       most unfinished jobs of one key
    ESPALIER_MAX_REQUESTS      0                          most requests a second of one key, a process; 0: any
    ESPALIER_MAX_PREDICT_ROWS  10000                      most rows of one prediction request
    ESPALIER_MAX_FULL_NODES    2000000                    most rows times nodes (explain=full), levels or steps (path)
"""
