#include "wire/certificate.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "wire/bio.h"
#include "wire/freed.h"

namespace regatta::wire {
namespace {

constexpr long kDaySeconds = 24 * 60 * 60;
constexpr long kClockSkewSeconds = 60 * 60;  // machines whose clock is behind take it too

using Key = std::unique_ptr<EVP_PKEY, Freed<&EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freed<&X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freed<&X509_EXTENSION_free>>;
using Number = std::unique_ptr<BIGNUM, Freed<&BN_free>>;
using Store = std::unique_ptr<X509_STORE, Freed<&X509_STORE_free>>;
using Verification = std::unique_ptr<X509_STORE_CTX, Freed<&X509_STORE_CTX_free>>;

absl::Status OpensslError(const char* what) {
  const unsigned long code = ERR_peek_last_error();
  char text[256] = "no reason given";
  if (code != 0) ERR_error_string_n(code, text, sizeof text);
  ERR_clear_error();
  return absl::InternalError(absl::StrCat(what, ": OpenSSL: ", text));
}

Certificate ReadCertificate(const std::string& pem) {
  const Bio bio = Reading(pem);
  return Certificate(bio == nullptr ? nullptr : PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
}

// An encrypted key is none: nobody is there to be asked for the password.
Key ReadKey(const std::string& pem) {
  const Bio bio = Reading(pem);
  const auto no_password = [](char*, int, int, void*) { return -1; };
  return Key(bio == nullptr ? nullptr : PEM_read_bio_PrivateKey(bio.get(), nullptr, +no_password, nullptr));
}

std::string Written(const Bio& bio) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &bytes);
  return std::string(bytes, static_cast<size_t>(size));
}

absl::StatusOr<KeyedCertificate> ToPem(X509* certificate, EVP_PKEY* key) {
  const Bio cert_bio(BIO_new(BIO_s_mem())), key_bio(BIO_new(BIO_s_secmem()));
  if (cert_bio == nullptr || key_bio == nullptr || PEM_write_bio_X509(cert_bio.get(), certificate) != 1 ||
      PEM_write_bio_PKCS8PrivateKey(key_bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return OpensslError("cannot write a certificate");
  return KeyedCertificate{Written(cert_bio), Written(key_bio)};
}

// 127 random bits: positive, and never twice.
bool SetSerial(X509* certificate) {
  const Number number(BN_new());
  return number != nullptr && BN_rand(number.get(), 127, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool SetName(X509* certificate, const std::string& name) {
  return X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0) == 1;
}

bool AddExtension(X509* certificate, X509* issuer, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

struct NewCertificate {
  Certificate certificate;
  Key key;
};

// All but what tells an authority from a member, and the signature.
absl::StatusOr<NewCertificate> Begin(const std::string& name, int days) {
  NewCertificate made{Certificate(X509_new()), Key(EVP_EC_gen("P-256"))};
  X509* const certificate = made.certificate.get();
  if (certificate == nullptr || made.key == nullptr || X509_set_version(certificate, X509_VERSION_3) != 1 ||
      !SetSerial(certificate) || X509_gmtime_adj(X509_getm_notBefore(certificate), -kClockSkewSeconds) == nullptr ||
      X509_gmtime_adj(X509_getm_notAfter(certificate), kDaySeconds * days) == nullptr ||
      X509_set_pubkey(certificate, made.key.get()) != 1 || !SetName(certificate, name))
    return OpensslError("cannot make a certificate");
  return made;
}

std::string AlternativeNames(const std::vector<std::string>& hosts) {
  std::vector<std::string> names;
  for (const std::string& host : hosts) {
    in6_addr address;
    const bool ip = inet_pton(AF_INET, host.c_str(), &address) == 1 || inet_pton(AF_INET6, host.c_str(), &address) == 1;
    names.push_back(absl::StrCat(ip ? "IP:" : "DNS:", host));
  }
  return absl::StrJoin(names, ",");
}

std::string RandomWord() {
  unsigned char bytes[4] = {};
  RAND_bytes(bytes, sizeof bytes);
  return absl::StrFormat("%02x%02x%02x%02x", bytes[0], bytes[1], bytes[2], bytes[3]);
}

std::string DateOf(const ASN1_TIME* time) {
  struct tm parts {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return "?";
  return absl::StrFormat("%04d-%02d-%02d", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

absl::Status CheckTime(const std::string& path, const X509* certificate) {
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0)
    return absl::InvalidArgumentError(absl::StrCat(path, ": the certificate ended on ",
                                                   DateOf(X509_get0_notAfter(certificate)),
                                                   "; make new ones with `regatta credentials init`"));
  if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0)
    return absl::InvalidArgumentError(absl::StrCat(path, ": the certificate begins on ",
                                                   DateOf(X509_get0_notBefore(certificate)),
                                                   "; is this machine's clock right?"));
  return absl::OkStatus();
}

// All certificates of `authorities` may have signed it, or what signed it, which the certificate's own file may hold.
absl::StatusOr<Store> StoreOf(const std::string& path, const std::string& pem) {
  Store store(X509_STORE_new());
  const Bio bio = Reading(pem);
  int count = 0;
  while (store != nullptr && bio != nullptr) {
    const Certificate authority(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    if (authority == nullptr) break;
    X509_STORE_add_cert(store.get(), authority.get());
    ++count;
  }
  ERR_clear_error();
  if (count == 0) return absl::InvalidArgumentError(absl::StrCat("tls_ca: ", path, " holds no certificate (PEM)"));
  return store;
}

absl::Status CheckSigned(const cluster::Credentials& credentials, X509* certificate) {
  ASSIGN_OR_RETURN(const Store store, StoreOf(credentials.files.ca, credentials.ca));
  STACK_OF(X509)* const chain = sk_X509_new_null();
  const Bio bio = Reading(credentials.cert);
  while (X509* const link = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) sk_X509_push(chain, link);
  ERR_clear_error();
  const Verification verification(X509_STORE_CTX_new());
  const bool ready =
      verification != nullptr && X509_STORE_CTX_init(verification.get(), store.get(), certificate, chain) == 1;
  const bool good = ready && X509_verify_cert(verification.get()) == 1;
  const std::string why = ready ? X509_verify_cert_error_string(X509_STORE_CTX_get_error(verification.get())) : "";
  sk_X509_pop_free(chain, X509_free);
  ERR_clear_error();
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("tls_cert: ", credentials.files.cert, " is not signed by tls_ca, ",
                                                 credentials.files.ca, " (", why,
                                                 "); take both from one run of `regatta credentials init`"));
}

}  // namespace

absl::StatusOr<KeyedCertificate> MakeAuthority(int days) {
  ASSIGN_OR_RETURN(const NewCertificate made, Begin(absl::StrCat("Regatta cluster ", RandomWord()), days));
  X509* const certificate = made.certificate.get();
  if (X509_set_issuer_name(certificate, X509_get_subject_name(certificate)) != 1 ||
      !AddExtension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !AddExtension(certificate, certificate, NID_key_usage, "critical,keyCertSign") ||
      !AddExtension(certificate, certificate, NID_subject_key_identifier, "hash") ||
      X509_sign(certificate, made.key.get(), EVP_sha256()) == 0)
    return OpensslError("cannot make the authority");
  return ToPem(certificate, made.key.get());
}

absl::StatusOr<KeyedCertificate> MakeCertificate(const KeyedCertificate& authority,
                                                 const std::vector<std::string>& hosts, int days) {
  const Certificate issuer = ReadCertificate(authority.cert);
  const Key issuer_key = ReadKey(authority.key);
  if (issuer == nullptr || issuer_key == nullptr) return OpensslError("cannot read the authority");
  ASSIGN_OR_RETURN(const NewCertificate made, Begin("regatta", days));
  X509* const certificate = made.certificate.get();
  if (X509_set_issuer_name(certificate, X509_get_subject_name(issuer.get())) != 1 ||
      !AddExtension(certificate, issuer.get(), NID_basic_constraints, "critical,CA:FALSE") ||
      !AddExtension(certificate, issuer.get(), NID_key_usage, "critical,digitalSignature") ||
      !AddExtension(certificate, issuer.get(), NID_ext_key_usage, "serverAuth,clientAuth") ||
      !AddExtension(certificate, issuer.get(), NID_subject_key_identifier, "hash") ||
      !AddExtension(certificate, issuer.get(), NID_authority_key_identifier, "keyid:always") ||
      !AddExtension(certificate, issuer.get(), NID_subject_alt_name, AlternativeNames(hosts)) ||
      X509_sign(certificate, issuer_key.get(), EVP_sha256()) == 0)
    return OpensslError("cannot make the certificate");
  return ToPem(certificate, made.key.get());
}

absl::Status CheckCertificate(const cluster::Credentials& credentials) {
  const Certificate certificate = ReadCertificate(credentials.cert);
  const Key key = ReadKey(credentials.key);
  ERR_clear_error();
  if (certificate == nullptr)
    return absl::InvalidArgumentError(
        absl::StrCat("tls_cert: ", credentials.files.cert, " holds no certificate (PEM)"));
  if (key == nullptr)
    return absl::InvalidArgumentError(
        absl::StrCat("tls_key: ", credentials.files.key, " holds no private key (PEM, without a password)"));
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError(absl::StrCat("tls_key: ", credentials.files.key, " is not the key of ",
                                                   credentials.files.cert,
                                                   "; take both from one run of `regatta credentials init`"));
  }
  RETURN_IF_ERROR(CheckTime(absl::StrCat("tls_cert: ", credentials.files.cert), certificate.get()));
  return CheckSigned(credentials, certificate.get());
}

absl::StatusOr<std::string> EndOf(const std::string& cert) {
  const Certificate certificate = ReadCertificate(cert);
  if (certificate == nullptr) return OpensslError("cannot read a certificate");
  return DateOf(X509_get0_notAfter(certificate.get()));
}

}  // namespace regatta::wire
