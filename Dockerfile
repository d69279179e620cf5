# undrift as an image. Two of its stages are for use:
#
#   docker build --tag undrift .                       undrift with a shell, Git and curl, for pipelines
#   docker build --target minimal --tag undrift .      one static binary, and certificates
#
# Without the embedded service: --build-arg CARGO_ARGS=--no-default-features

FROM rust:1.90-alpine AS build
# For SQLite, the cryptography and the allocator, which are C.
RUN apk add --no-cache gcc musl-dev
WORKDIR /source
COPY . .
ARG CARGO_ARGS=""
ARG UNDRIFT_COMMIT=""
# Linked to musl, which makes it static.
RUN cargo build --release --locked $CARGO_ARGS && cp target/release/undrift /undrift

FROM scratch AS minimal
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /undrift /usr/bin/undrift
USER 65532:65532
WORKDIR /work
ENTRYPOINT ["/usr/bin/undrift"]

FROM alpine:3.22 AS ci
# Git for `--base`. A runner clones as another user than the one that undrift runs as, which Git refuses to
# read unless it is told that this is meant.
RUN apk add --no-cache ca-certificates curl git \
    && git config --system --add safe.directory '*'
COPY --from=build /undrift /usr/bin/undrift
USER 65532:65532
WORKDIR /work
ENTRYPOINT ["/usr/bin/undrift"]
