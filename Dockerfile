# The experiments in the environment of requirements.lock. `make test` in it adds requirements-dev.lock. See docs/installation.md.
FROM python:3.11-slim-bookworm

RUN apt-get update \
    && apt-get install --yes --no-install-recommends make openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 audits

ENV PATH=/opt/audits/.venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    OMP_NUM_THREADS=1 \
    XDG_CACHE_HOME=/tmp/cache
WORKDIR /opt/audits
RUN chown audits:audits /opt/audits
USER audits

# The environment is a layer of its own: a change of the code does not install it again.
COPY --chown=audits:audits requirements.lock ./
RUN python -m venv .venv \
    && .venv/bin/python -m pip install --no-cache-dir uv==0.13.8 \
    && .venv/bin/uv pip install --no-cache --compile-bytecode --python .venv/bin/python \
       --extra-index-url https://download.pytorch.org/whl/cpu --index-strategy unsafe-best-match -r requirements.lock

COPY --chown=audits:audits . ./
RUN .venv/bin/uv pip install --no-cache --python .venv/bin/python --no-deps --no-build-isolation --editable . \
    && mkdir -p data/raw data/prepared results \
    && touch .venv/.installed

VOLUME ["/opt/audits/data/raw", "/opt/audits/data/prepared", "/opt/audits/results"]
CMD ["make", "reproduce"]
