# Trimtab: the command, the reporter and the service, without Spark. docs/install.md says how to build and run it.
#
#   docker build -t trimtab .
#   docker run --rm --read-only --network host trimtab plan --bootstrap-server broker1:9092
#
# Everything is installed from requirements/image.txt, by hash. The planner's kernels are compiled while it is built, so no start compiles.

ARG PYTHON=3.13-slim-trixie

FROM python:${PYTHON} AS build
# Any machine of the last ten years has it; for others: --build-arg PROCESSOR=x86-64-v2.
ARG PROCESSOR=x86-64-v3
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/trimtab
COPY requirements/image.txt /build/requirements/image.txt
RUN /opt/trimtab/bin/pip install --require-hashes --no-deps --requirement /build/requirements/image.txt
COPY . /build
RUN /opt/trimtab/bin/pip install --no-deps --no-index --no-build-isolation /build \
    && /opt/trimtab/bin/trimtab compile --for "${PROCESSOR}" --out /opt/trimtab/kernels

FROM python:${PYTHON}
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /var/lib/trimtab trimtab \
    && install --directory --owner trimtab --group trimtab /var/lib/trimtab
COPY --from=build /opt/trimtab /opt/trimtab
ENV PATH=/opt/trimtab/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    TRIMTAB_KERNELS=/opt/trimtab/kernels XDG_CACHE_HOME=/tmp XDG_STATE_HOME=/var/lib/trimtab
USER 10001:10001
WORKDIR /var/lib/trimtab
VOLUME ["/var/lib/trimtab", "/tmp"]
ENTRYPOINT ["trimtab"]
CMD ["--help"]
