#include "http/self_signed.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>
#include <utility>

#include "base/check.h"

namespace octavo::http {
namespace {

constexpr long kHour = 3600;  // tolerance for clocks that differ
constexpr long kTenYears = 3650L * 24 * kHour;

template <class Write>
std::string pem(Write&& write) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new(BIO_s_mem()), BIO_free);
  CHECK(out && write(out.get()) == 1);
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

}  // namespace

SelfSigned make_self_signed(const std::string& name, const std::string& alternative_names) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), X509_free);
  CHECK(key && certificate);
  X509* x = certificate.get();
  X509_set_version(x, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
  X509_gmtime_adj(X509_getm_notBefore(x), -kHour);
  X509_gmtime_adj(X509_getm_notAfter(x), kTenYears);
  X509_set_pubkey(x, key.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(x, X509_get_subject_name(x));
  for (const auto& [id, value] :
       {std::pair{NID_subject_alt_name, alternative_names.c_str()}, {NID_basic_constraints, "CA:TRUE"}}) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, id, value);
    CHECK(extension != nullptr, "{}", value);
    X509_add_ext(x, extension, -1);
    X509_EXTENSION_free(extension);
  }
  CHECK(X509_sign(x, key.get(), EVP_sha256()) > 0);
  return {.certificate = pem([&](BIO* out) { return PEM_write_bio_X509(out, x); }),
          .key = pem([&](BIO* out) {
            return PEM_write_bio_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

}  // namespace octavo::http
