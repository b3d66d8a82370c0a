# One image for coordinator and workers: the binary alone, linked statically.
#   docker build -t powersweep .
# BUILDER needs the Rust toolchain of Cargo.toml (rust-version) and a C compiler.
ARG BUILDER=rust:1.95-bookworm
FROM ${BUILDER} AS build
WORKDIR /src
COPY . .
ENV CARGO_TARGET_DIR=/target RUSTFLAGS="-C target-feature=+crt-static"
RUN cargo build --release --locked --package powersweep --target "$(uname -m)-unknown-linux-gnu" \
    && mkdir -p /image/data /image/tmp \
    && cp /target/*/release/powersweep /image/powersweep

FROM scratch
COPY --from=build /image /
ENV POWERSWEEP_DATA=/data
VOLUME /data
EXPOSE 7450
ENTRYPOINT ["/powersweep"]
CMD ["serve", "--listen", "0.0.0.0:7450", "--insecure"]
