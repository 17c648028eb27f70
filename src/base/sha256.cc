#define OPENSSL_SUPPRESS_DEPRECATED 1
#include "base/sha256.h"

#include <openssl/sha.h>

#include <new>

#include "base/result.h"

namespace belay {

static_assert(sizeof(SHA256_CTX) <= 112 && alignof(SHA256_CTX) <= 8);

namespace {
SHA256_CTX* StateOf(unsigned char* state) {
  return reinterpret_cast<SHA256_CTX*>(state);
}
}  // namespace

std::optional<Hash256> Hash256::FromHexText(std::string_view text) {
  Hash256 hash;
  if (!FromHex(text, hash.bytes)) return std::nullopt;
  return hash;
}

Hash256 Hash256::FromSpan(ByteSpan exactly_32) {
  BELAY_CHECK(exactly_32.size() == 32);
  Hash256 hash;
  std::memcpy(hash.bytes.data(), exactly_32.data(), 32);
  return hash;
}

void Sha256::Reset() { SHA256_Init(StateOf(state_)); }
void Sha256::Update(ByteSpan bytes) {
  SHA256_Update(StateOf(state_), bytes.data(), bytes.size());
}
Hash256 Sha256::Finish() {
  Hash256 hash;
  SHA256_Final(reinterpret_cast<unsigned char*>(hash.bytes.data()), StateOf(state_));
  return hash;
}
Hash256 Sha256::Of(ByteSpan bytes) {
  Sha256 hasher;
  hasher.Update(bytes);
  return hasher.Finish();
}

uint64_t Check64(ByteSpan bytes) { return LoadU64(Sha256::Of(bytes).bytes.data()); }

}  // namespace belay
