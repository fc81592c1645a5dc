# The service in one image: `espalier up` with an SQLite file in the volume /data, or, with other words after the image's
# name, any command of `espalier`. docs/operations/deploy.md says how it is run.

FROM python:3.13-slim AS build

# The kernels are compiled by zig, which pip brings; Python's C headers are of the image or of Debian.
RUN [ -e "$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ] \
    || { apt-get update && apt-get install --yes --no-install-recommends libpython3-dev; }
RUN python3 -m venv /opt/espalier
ENV PATH=/opt/espalier/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY requirements.lock /source/
RUN pip install --require-hashes --only-binary :all: -r /source/requirements.lock
COPY LICENSE README.md pyproject.toml setup.py /source/
COPY tools/kernel_build.py /source/tools/
COPY espalier /source/espalier
COPY migrations /source/migrations
COPY service /source/service
RUN pip install --no-deps /source && pip uninstall --yes pip
# The libraries' own tests and headers, which nothing here needs.
RUN find /opt/espalier/lib -type d \( -name tests -o -name include \) -prune -exec rm -r {} +

FROM python:3.13-slim

COPY --from=build /opt/espalier /opt/espalier
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /tmp --shell /usr/sbin/nologin espalier \
    && install --directory --owner=espalier --group=espalier --mode=0750 /data
ENV PATH=/opt/espalier/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    MALLOC_ARENA_MAX=1 \
    ARROW_DEFAULT_MEMORY_POOL=system \
    ESPALIER_AUTH=keys \
    ESPALIER_DATABASE_URL=sqlite:////data/espalier.db \
    ESPALIER_HOST=0.0.0.0 \
    ESPALIER_WORK=/data
USER espalier
WORKDIR /data
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["espalier", "ready"]
ENTRYPOINT ["espalier"]
CMD ["up"]
