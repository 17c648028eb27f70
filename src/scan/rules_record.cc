#include "scan/rules_record.h"

#include "base/path.h"

namespace belay {

namespace {

// Tags of the node's fields; docs/format.md.
constexpr uint64_t kProtect = 1, kExclude = 2, kSecretPattern = 3, kFlags = 4,
                   kMaxFileSize = 5, kRootMode = 6, kRootUid = 7, kRootGid = 8,
                   kWorkTree = 9, kLooseRule = 10, kSkipped = 11, kOtherRoot = 12;
constexpr uint64_t kSkipSecrets = 1, kDefaultExcludesOn = 2;
// Of a work tree.
constexpr uint64_t kTopPath = 1, kTopFlags = 2, kTopInfo = 3, kTopGlobal = 4,
                   kTopBelow = 5, kTopAbove = 6;
constexpr uint64_t kInGit = 1, kIgnoreCase = 2, kIndexUnknown = 4;
// Of a file of rules. One without content stands for a directory that had none.
constexpr uint64_t kFileName = 1, kFileContent = 2;
// Of a skipped path.
constexpr uint64_t kSkippedPath = 1, kSkippedWhy = 2;

Error Bad() { return Error(Errc::kCorrupt, "a rules record that makes no sense"); }

class Encoder {
 public:
  Encoder(Node& node, ScanSink& sink) : node_(node), sink_(sink) {}

  Status AddFile(Fields& to, uint64_t tag, const std::optional<RuleBytes>& file) {
    Fields fields;
    if (file) {
      BELAY_TRY(ObjectId id, sink_.PutContent(AsBytes(file->bytes)));
      fields.Add(kFileName, file->name);
      fields.Add(kFileContent, id.bytes);
      ObjectKey key{ObjectType::kBlob, id};
      if (std::find(node_.refs.begin(), node_.refs.end(), key) == node_.refs.end())
        node_.refs.push_back(key);
    }
    to.AddNested(tag, fields);
    return Ok();
  }

 private:
  Node& node_;
  ScanSink& sink_;
};

class Decoder {
 public:
  explicit Decoder(const ContentReader& read) : read_(read) {}

  static Result<Fields> Nested(ByteSpan bytes) {
    ByteReader in(bytes);
    return Fields::Decode(in);
  }
  Result<std::optional<RuleBytes>> File(ByteSpan bytes) {
    BELAY_TRY(Fields fields, Nested(bytes));
    if (!fields.has(kFileContent)) return std::optional<RuleBytes>();
    auto name = fields.Text(kFileName);
    auto content = fields.All(kFileContent);
    if (!name || content.size() != 1 || content[0].size() != sizeof(ObjectId))
      return Bad();
    ObjectId id;
    std::copy(content[0].begin(), content[0].end(), id.bytes.begin());
    BELAY_TRY(Bytes text, read_(id));
    return std::optional(RuleBytes{*name, std::string(AsText(text))});
  }
  Result<std::optional<RuleBytes>> OneFile(const Fields& fields, uint64_t tag) {
    auto all = fields.All(tag);
    if (all.size() > 1) return Bad();
    if (all.empty()) return std::optional<RuleBytes>();
    return File(all[0]);
  }

 private:
  const ContentReader& read_;
};

std::vector<std::string> Texts(const Fields& fields, uint64_t tag) {
  std::vector<std::string> out;
  for (ByteSpan value : fields.All(tag)) out.emplace_back(AsText(value));
  return out;
}

bool IsPathOrTop(const std::string& path) {
  return path.empty() || RelPath::Parse(path).ok();
}

}  // namespace

TreeEntry RulesRecord::RootEntryOf(uint32_t mode, uint32_t uid, uint32_t gid) {
  TreeEntry entry;
  entry.kind = EntryKind::kDirectory;
  entry.mode = mode;
  entry.uid = uid;
  entry.gid = gid;
  return entry;
}

RulesRecord MakeRulesRecord(const ScanRequest& request, const ScanSummary& summary) {
  RulesRecord record;
  record.lists = request.rules->lists();
  record.max_file_size = request.max_file_size;
  record.mode = summary.mode;
  record.uid = summary.uid;
  record.gid = summary.gid;
  for (const ScanSummary::AtPath& top : summary.work_trees)
    record.work_trees.push_back({.path = top.path,
                                 .in_git = top.facts.repository.has_value(),
                                 .index_unknown = top.facts.index_unknown,
                                 .input = *top.facts.input});
  record.loose_rules = summary.loose_rules;
  for (const SkippedPath& skipped : summary.skipped) {
    if (skipped.why == Skip::kOtherRoot)
      record.other_roots.push_back(skipped.path);
    else
      record.skipped.push_back(skipped);
  }
  return record;
}

Result<Node> EncodeRules(const RulesRecord& record, ScanSink& sink) {
  Node node;
  Encoder encoder(node, sink);
  for (const auto& p : record.lists.protect) node.fields.Add(kProtect, p);
  for (const auto& p : record.lists.exclude) node.fields.Add(kExclude, p);
  for (const auto& p : record.lists.secret_patterns) node.fields.Add(kSecretPattern, p);
  node.fields.AddNumber(kFlags,
                        (record.lists.skip_secrets ? kSkipSecrets : 0) |
                            (record.lists.default_excludes ? kDefaultExcludesOn : 0));
  node.fields.AddNumber(kMaxFileSize, record.max_file_size);
  node.fields.AddNumber(kRootMode, record.mode);
  node.fields.AddNumber(kRootUid, record.uid);
  node.fields.AddNumber(kRootGid, record.gid);
  for (const RulesRecord::Top& top : record.work_trees) {
    Fields fields;
    fields.Add(kTopPath, top.path);
    fields.AddNumber(kTopFlags, (top.in_git ? kInGit : 0) |
                                    (top.input.ignore_case ? kIgnoreCase : 0) |
                                    (top.index_unknown ? kIndexUnknown : 0));
    if (top.input.info_exclude)
      BELAY_OK(encoder.AddFile(fields, kTopInfo, top.input.info_exclude));
    if (top.input.global_excludes)
      BELAY_OK(encoder.AddFile(fields, kTopGlobal, top.input.global_excludes));
    if (!top.input.root_below_top.empty())
      fields.Add(kTopBelow, top.input.root_below_top);
    for (const auto& above : top.input.above_root)
      BELAY_OK(encoder.AddFile(fields, kTopAbove, above));
    node.fields.AddNested(kWorkTree, fields);
  }
  for (const RuleBytes& file : record.loose_rules)
    BELAY_OK(encoder.AddFile(node.fields, kLooseRule, file));
  for (const SkippedPath& skipped : record.skipped) {
    Fields fields;
    fields.Add(kSkippedPath, skipped.path);
    fields.AddNumber(kSkippedWhy, static_cast<uint64_t>(skipped.why));
    node.fields.AddNested(kSkipped, fields);
  }
  for (const std::string& path : record.other_roots) node.fields.Add(kOtherRoot, path);
  std::sort(node.refs.begin(), node.refs.end());
  return node;
}

std::vector<std::pair<std::string, ObjectId>> LooseRulesOf(const Node& node) {
  std::vector<std::pair<std::string, ObjectId>> out;
  for (ByteSpan bytes : node.fields.All(kLooseRule)) {
    auto fields = Decoder::Nested(bytes);
    if (!fields.ok()) continue;
    auto name = fields->Text(kFileName);
    auto content = fields->All(kFileContent);
    if (!name || content.size() != 1 || content[0].size() != sizeof(ObjectId)) continue;
    out.emplace_back(*name, ObjectId::FromSpan(content[0]));
  }
  return out;
}

Result<RulesRecord> DecodeRules(const Node& node, const ContentReader& read) {
  Decoder decoder(read);
  RulesRecord record;
  const Fields& fields = node.fields;
  record.lists.protect = Texts(fields, kProtect);
  record.lists.exclude = Texts(fields, kExclude);
  record.lists.secret_patterns = Texts(fields, kSecretPattern);
  auto flags = fields.Number(kFlags);
  auto size = fields.Number(kMaxFileSize);
  auto mode = fields.Number(kRootMode), uid = fields.Number(kRootUid),
       gid = fields.Number(kRootGid);
  if (!flags || !size || !mode || *mode > 07777 || !uid || *uid > UINT32_MAX || !gid ||
      *gid > UINT32_MAX)
    return Bad();
  record.lists.skip_secrets = (*flags & kSkipSecrets) != 0;
  record.lists.default_excludes = (*flags & kDefaultExcludesOn) != 0;
  record.max_file_size = *size;
  record.mode = static_cast<uint32_t>(*mode);
  record.uid = static_cast<uint32_t>(*uid);
  record.gid = static_cast<uint32_t>(*gid);
  for (ByteSpan bytes : fields.All(kWorkTree)) {
    BELAY_TRY(Fields top_fields, Decoder::Nested(bytes));
    RulesRecord::Top top;
    auto path = top_fields.Text(kTopPath);
    auto top_flags = top_fields.Number(kTopFlags);
    if (!path || !top_flags || !IsPathOrTop(*path)) return Bad();
    top.path = *path;
    top.in_git = (*top_flags & kInGit) != 0;
    top.index_unknown = (*top_flags & kIndexUnknown) != 0;
    top.input.ignore_case = (*top_flags & kIgnoreCase) != 0;
    BELAY_TRY(top.input.info_exclude, decoder.OneFile(top_fields, kTopInfo));
    BELAY_TRY(top.input.global_excludes, decoder.OneFile(top_fields, kTopGlobal));
    top.input.root_below_top = top_fields.Text(kTopBelow).value_or("");
    if (!IsPathOrTop(top.input.root_below_top)) return Bad();
    for (ByteSpan above : top_fields.All(kTopAbove)) {
      BELAY_TRY(auto file, decoder.File(above));
      top.input.above_root.push_back(std::move(file));
    }
    record.work_trees.push_back(std::move(top));
  }
  for (ByteSpan bytes : fields.All(kLooseRule)) {
    BELAY_TRY(auto file, decoder.File(bytes));
    if (!file || !RelPath::Parse(file->name).ok()) return Bad();
    record.loose_rules.push_back(std::move(*file));
  }
  for (ByteSpan bytes : fields.All(kSkipped)) {
    BELAY_TRY(Fields skipped, Decoder::Nested(bytes));
    auto path = skipped.Text(kSkippedPath);
    auto why = skipped.Number(kSkippedWhy);
    if (!path || !RelPath::Parse(*path).ok() || !why || *why > UINT8_MAX) return Bad();
    record.skipped.push_back({*path, static_cast<Skip>(*why)});
  }
  for (std::string& path : Texts(fields, kOtherRoot)) {
    if (!RelPath::Parse(path).ok()) return Bad();
    record.other_roots.push_back(std::move(path));
  }
  return record;
}

}  // namespace belay
