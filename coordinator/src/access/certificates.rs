//! The certificates of a coordinator: one that clients trust, which signs the server's own.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use powersweep_experiments::Digest;
use powersweep_proto::access::{SERVER_NAME, Secret};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, version};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// Life of the server's certificate. Half of it later, the next one is made.
pub const CERTIFICATE_LIFE: Duration = Duration::from_secs(365 * DAY.as_secs());
/// Life of the certificate that clients trust, which is made once: its digest is in join lines.
const AUTHORITY_LIFE: Duration = Duration::from_secs(3650 * DAY.as_secs());
/// Certificates are valid from this time before they are made: clocks of other machines may be late.
const EARLIER: Duration = DAY;

/// 256 random bits.
pub(super) fn random() -> Secret {
    let mut bytes = [0; 32];
    ring::default_provider().secure_random.fill(&mut bytes).expect("the system has random numbers");
    Secret::new(Digest::from(bytes).to_string())
}

fn params(names: &[&str], common_name: &str, life: Duration) -> Result<CertificateParams, rcgen::Error> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::CommonName, common_name);
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let from = rcgen::date_time_ymd(1970, 1, 1) + since_1970.saturating_sub(EARLIER);
    (params.not_before, params.not_after) = (from, from + EARLIER + life);
    Ok(params)
}

fn authority_params() -> Result<CertificateParams, rcgen::Error> {
    let mut params = params(&[], "powersweep coordinator", AUTHORITY_LIFE)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    Ok(params)
}

/// A new certificate that clients can trust, and its key, PEM.
pub(super) fn authority() -> Result<(String, String), String> {
    let made = KeyPair::generate().and_then(|key| {
        let certificate = authority_params()?.self_signed(&key)?;
        Ok((certificate.pem(), key.serialize_pem()))
    });
    made.map_err(|error| error.to_string())
}

/// Makes the server's certificates. The key of each is in this process only.
pub(super) struct Certificates {
    ca: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
    present: RwLock<Present>,
}

struct Present {
    certified: Arc<CertifiedKey>,
    made: SystemTime,
}

impl Certificates {
    pub(super) fn new(ca_pem: &str, key_pem: &str) -> Result<Certificates, String> {
        let ca = CertificateDer::from_pem_slice(ca_pem.as_bytes()).map_err(|error| error.to_string())?;
        let key = KeyPair::from_pem(key_pem).map_err(|error| error.to_string())?;
        let issuer = Issuer::new(authority_params().map_err(|error| error.to_string())?, key);
        let present = RwLock::new(issue(&ca, &issuer)?);
        Ok(Certificates { ca, issuer, present })
    }

    /// Makes the next certificate if half of the present one's life is over, or if the clock was set back.
    pub(super) fn renew_in_time(&self) -> Result<(), String> {
        let made = self.present.read().unwrap_or_else(PoisonError::into_inner).made;
        let age = SystemTime::now().duration_since(made);
        if age.is_ok_and(|age| age < CERTIFICATE_LIFE / 2) {
            return Ok(());
        }
        let next = issue(&self.ca, &self.issuer)?;
        *self.present.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(())
    }

    /// TLS settings that always use the present certificate.
    pub(super) fn config(self: &Arc<Certificates>) -> Arc<ServerConfig> {
        let provider = Arc::new(ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&version::TLS13])
            .expect("the provider has TLS 1.3")
            .with_no_client_auth()
            .with_cert_resolver(Arc::<Certificates>::clone(self));
        config.alpn_protocols = vec![b"h2".to_vec()];
        Arc::new(config)
    }
}

fn issue(ca: &CertificateDer<'static>, issuer: &Issuer<'static, KeyPair>) -> Result<Present, String> {
    let made = SystemTime::now();
    let signed = KeyPair::generate().and_then(|key| {
        let mut params = params(&[SERVER_NAME], SERVER_NAME, CERTIFICATE_LIFE)?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        Ok((params.signed_by(&key, issuer)?, key))
    });
    let (certificate, key) = signed.map_err(|error| error.to_string())?;
    // Clients that know the authority by its digest look for it in the chain.
    let chain = vec![certificate.der().clone(), ca.clone()];
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let certified = CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|error| error.to_string())?;
    Ok(Present { certified: Arc::new(certified), made })
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.present.read().unwrap_or_else(PoisonError::into_inner).certified))
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certificates")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_renewed_when_half_of_its_life_is_over() {
        let (ca, key) = authority().expect("it can be made");
        let certificates = Certificates::new(&ca, &key).expect("they belong together");
        let present = || Arc::clone(&certificates.present.read().expect("no panic").certified);
        let first = present();
        certificates.renew_in_time().expect("nothing to do");
        assert!(Arc::ptr_eq(&first, &present()));
        certificates.present.write().expect("no panic").made -= CERTIFICATE_LIFE / 2;
        certificates.renew_in_time().expect("it can be made");
        assert!(!Arc::ptr_eq(&first, &present()));
        assert_eq!(first.cert[1], present().cert[1], "the authority stays");
        assert_ne!(first.cert[0], present().cert[0]);
    }
}
