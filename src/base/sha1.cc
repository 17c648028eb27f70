#define OPENSSL_SUPPRESS_DEPRECATED 1
#include "base/sha1.h"

#include <openssl/sha.h>

namespace belay {

static_assert(sizeof(SHA_CTX) <= 96 && alignof(SHA_CTX) <= 8);

namespace {
SHA_CTX* Ctx(unsigned char* state) { return reinterpret_cast<SHA_CTX*>(state); }
}  // namespace

void Sha1::Reset() { SHA1_Init(Ctx(state_)); }
void Sha1::Update(ByteSpan bytes) {
  SHA1_Update(Ctx(state_), bytes.data(), bytes.size());
}
std::array<std::byte, 20> Sha1::Finish() {
  std::array<std::byte, 20> hash{};
  SHA1_Final(reinterpret_cast<unsigned char*>(hash.data()), Ctx(state_));
  return hash;
}

}  // namespace belay
