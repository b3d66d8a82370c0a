# One image for coordinator and workers: the binary alone, linked statically.
#   docker build --tag powersweep .
# BUILDER needs the Rust toolchain of Cargo.toml (rust-version), a C compiler, make and CA certificates.
ARG BUILDER=rust:1.95.0-bookworm
FROM ${BUILDER} AS build
WORKDIR /src
COPY . .
# The commit, for the footers of result files: the context has no .git.
ARG POWERSWEEP_COMMIT
ENV CARGO_TARGET_DIR=/target RUSTFLAGS="-C target-feature=+crt-static"
# Object stores are trusted by the system's certificates: without a copy of them in the image no s3:// address works.
RUN cargo build --release --locked --package powersweep-cli --features cloud,figures,wasm --target "$(uname -m)-unknown-linux-gnu" \
    && mkdir -p /image/etc/ssl/certs && mkdir -m 1777 /image/data /image/tmp \
    && cp /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ \
    && cp /target/*/release/powersweep /image/powersweep

FROM scratch
COPY --from=build /image /
# The access files of data in an object store are on the volume, too.
ENV POWERSWEEP_DATA=/data XDG_STATE_HOME=/data
VOLUME /data
EXPOSE 7450
# Not root. Everybody may write in the volume that Docker makes; for a mounted folder, give its owner by --user.
USER 1000:1000
ENTRYPOINT ["/powersweep"]
CMD ["serve", "--listen", "0.0.0.0:7450"]
