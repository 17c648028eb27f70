#pragma once

// Between the parts of log_record.h.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/log_record.h"

namespace belay {

inline Error BadRecord(std::string_view why) {
  return Error(Errc::kCorrupt, "record: " + std::string(why));
}

inline void AddText(Fields& fields, uint64_t tag,
                    const std::optional<std::string>& text) {
  if (text) fields.Add(tag, *text);
}

Fields EncodeAuthorship(const Authorship& by);
Result<Authorship> DecodeAuthorship(ByteSpan bytes);
Fields EncodeExternal(const ExternalFile& file);
// Those that a Belay would write; of the same path the first.
std::vector<ExternalFile> DecodeExternals(const std::vector<ByteSpan>& all);

}  // namespace belay
