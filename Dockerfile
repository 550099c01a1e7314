# syntax=docker/dockerfile:1
# The wheel is built in one stage; the other holds only what runs.
FROM python:3.12-slim-bookworm AS build
WORKDIR /source
RUN pip install --no-cache-dir build==1.6.1
COPY pyproject.toml README.md CHANGELOG.md CITATION.cff LICENSE LICENSE-DATA.md ./
COPY reasoningbank reasoningbank
COPY ontology ontology
COPY experiments experiments
RUN python -m build --wheel --outdir /wheels

FROM python:3.12-slim-bookworm
LABEL org.opencontainers.image.title="reasoningbank" \
      org.opencontainers.image.licenses="Apache-2.0 AND CC-BY-4.0"
ENV PYTHONUNBUFFERED=1 REASONINGBANK_CACHE=/cache
COPY constraints.txt /tmp/constraints.txt
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --constraint /tmp/constraints.txt \
        "reasoningbank[demo,graph,mcp] @ file://$(ls /wheels/*.whl)" \
    && useradd --create-home --uid 1000 user \
    && install --directory --owner=user /cache /work
USER 1000
WORKDIR /work
VOLUME ["/cache", "/work"]
ENTRYPOINT ["reasoningbank"]
CMD ["--help"]
