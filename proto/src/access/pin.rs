//! Trust in one certificate, which is given itself or by its digest.

use std::sync::Arc;

use powersweep_experiments::Digest;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, TrustAnchor, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme, crypto::ring,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::SERVER_NAME;

/// The digest of a certificate in PEM form.
pub(super) fn digest(pem: &str) -> Option<Digest> {
    CertificateDer::from_pem_slice(pem.as_bytes()).ok().map(|der| Digest::of(&der))
}

/// The certificate as a trust anchor, or why it is none.
pub(crate) fn anchor(pem: &str) -> Result<TrustAnchor<'static>, String> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes());
    let der = der.map_err(|error| format!("its certificate cannot be read: {error}"))?;
    anchored(der).map(|(_, anchor)| anchor).map_err(|error| format!("its certificate cannot be used: {error}"))
}

fn anchored(der: CertificateDer<'static>) -> Result<(RootCertStore, TrustAnchor<'static>), Error> {
    let mut roots = RootCertStore::empty();
    roots.add(der)?;
    let anchor = roots.roots[0].clone();
    Ok((roots, anchor))
}

/// Connects to `host`, which must prove that the certificate of this digest signed its own; returns that certificate.
pub(crate) async fn anchor_of(host: &str, digest: Digest) -> Result<TrustAnchor<'static>, String> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(Pinned { digest, provider: Arc::clone(&provider) });
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::<Pinned>::clone(&verifier))
        .with_no_client_auth();
    let stream = TcpStream::connect(host).await.map_err(|error| error.to_string())?;
    let name = ServerName::try_from(SERVER_NAME).expect("the name is a host name");
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    let stream = stream.map_err(|error| error.to_string())?;
    let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let found = verifier.find(chain).ok_or_else(|| "the server has another certificate".to_owned())?;
    anchored(found.into_owned()).map(|(_, anchor)| anchor).map_err(|error| error.to_string())
}

/// Trusts the one certificate of this digest, which the server sends.
#[derive(Debug)]
struct Pinned {
    digest: Digest,
    provider: Arc<CryptoProvider>,
}

impl Pinned {
    fn find<'a>(&self, chain: &[CertificateDer<'a>]) -> Option<CertificateDer<'a>> {
        chain.iter().find(|der| Digest::of(der) == self.digest).cloned()
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let found = self.find(intermediates).ok_or(Error::InvalidCertificate(CertificateError::UnknownIssuer))?;
        let (roots, _) = anchored(found.into_owned())?;
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&self.provider)).build();
        let verifier = verifier.map_err(|error| Error::General(error.to_string()))?;
        verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
