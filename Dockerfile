# The service in one image: `espalier up` with an SQLite file in the volume /data, or, with other words after the image's
# name, any command of `espalier`. docs/operations/deploy.md says how it is run.

FROM python:3.13-slim AS build

RUN python3 -m venv /opt/espalier
ENV PATH=/opt/espalier/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY requirements.lock /source/
RUN pip install --require-hashes --only-binary :all: -r /source/requirements.lock
COPY LICENSE README.md pyproject.toml /source/
COPY espalier /source/espalier
COPY migrations /source/migrations
COPY service /source/service
RUN pip install --no-deps /source && pip uninstall --yes pip
# The libraries' own tests and headers, which nothing here needs.
RUN find /opt/espalier/lib -type d \( -name tests -o -name include \) -prune -exec rm -r {} +
# Machine code for every processor of the named kind; where an older one is met, the first training compiles anew.
RUN NUMBA_CPU_NAME=$(if [ "$(uname -m)" = x86_64 ]; then echo x86-64-v3; else echo generic; fi) \
    NUMBA_CPU_FEATURES= NUMBA_CACHE_DIR= espalier compile

FROM python:3.13-slim

COPY --from=build /opt/espalier /opt/espalier
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /tmp --shell /usr/sbin/nologin espalier \
    && install --directory --owner=espalier --group=espalier --mode=0750 /data
ENV PATH=/opt/espalier/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    MALLOC_ARENA_MAX=2 \
    MALLOC_TRIM_THRESHOLD_=131072 \
    XDG_CACHE_HOME=/tmp \
    ESPALIER_AUTH=keys \
    ESPALIER_DATABASE_URL=sqlite:////data/espalier.db \
    ESPALIER_HOST=0.0.0.0
USER espalier
WORKDIR /data
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["espalier", "ready"]
ENTRYPOINT ["espalier"]
CMD ["up"]
