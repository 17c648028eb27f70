#include <unistd.h>

#include <cerrno>

#include "base/escape.h"
#include "cli/commands.h"
#include "cli/open_root.h"
#include "cli/text.h"
#include "scan/explain.h"

namespace belay {

namespace {

Result<std::string> ReadStdin() {
  std::string all;
  for (;;) {
    constexpr size_t kPiece = size_t{1} << 16;
    const size_t at = all.size();
    all.resize(at + kPiece);
    ssize_t got = read(0, all.data() + at, kPiece);
    all.resize(at + static_cast<size_t>(got > 0 ? got : 0));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SysError(errno, "cannot read standard input");
    if (got == 0) return all;
  }
}

// Every entry, empty ones too: who asks counts on one answer for each.
std::vector<std::string> Split(std::string_view text, char end) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t at = std::min(text.find(end), text.size());
    out.emplace_back(text.substr(0, at));
    text.remove_prefix(std::min(at + 1, text.size()));
  }
  return out;
}

// A path in which a name is too long for any file: what comes before it, and from it on
// without "." and "..". Nothing of that is there, and rules speak of it all the same.
// Other paths as they are.
std::pair<std::string, std::string> SplitAtTooLong(const std::string& given) {
  constexpr size_t kMaxName = 255;
  std::vector<std::string_view> parts;
  bool any = false;
  for (std::string_view rest = given;;) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    any = any || part.size() > kMaxName;
    if (part == ".." && !parts.empty() && parts.back() != "..")
      parts.pop_back();
    else if (!part.empty() && part != ".")
      parts.push_back(part);
    if (part.size() == rest.size()) break;
    rest.remove_prefix(part.size() + 1);
  }
  if (!any) return {given, ""};
  std::string front(given.starts_with('/') ? "/" : "."), beyond;
  for (std::string_view part : parts) {
    if (beyond.empty() && part.size() <= kMaxName)
      front += StrCat("/", part);
    else
      beyond += StrCat(beyond.empty() ? "" : "/", part);
  }
  return {front, beyond};
}

Result<Explanation> Ask(CommandContext& ctx, const AbsPath& root, Explainer& explainer,
                        const std::string& given) {
  // An empty path names nothing, and nothing is not in the root.
  if (given.empty() || given.find('\0') != std::string::npos) return Explanation();
  const auto [front, rest] = SplitAtTooLong(given);
  BELAY_TRY(auto below, FindBelow(ctx, root, front));
  if (!below) return Explanation();
  if (rest.empty()) return explainer.Explain(below->path, below->as_directory);
  return explainer.Explain(below->path.empty() ? rest : StrCat(below->path, "/", rest),
                           given.ends_with('/'));
}

std::string Line(const Explanation& e, const std::string& path) {
  std::string text = StrCat(e.covered ? "covered      " : "not covered  ",
                            Pad(e.why, 12), EscapeForDisplay(path));
  if (!e.rule.empty()) text += StrCat("  (", EscapeForDisplay(e.rule), ")");
  if (!e.link.empty())
    text += StrCat("  (beyond the symlink ", EscapeForDisplay(e.link), ")");
  return text;
}

}  // namespace

ExitCode CmdWhy(CommandContext& ctx) {
  std::vector<std::string> paths(ctx.args.positional().begin(),
                                 ctx.args.positional().end());
  const bool from_stdin = ctx.args.has("--stdin");
  if (ctx.args.has("--null") && !from_stdin)
    return ctx.term.FailUsage("-z belongs to --stdin");
  if (from_stdin && !paths.empty())
    return ctx.term.FailUsage("give paths or --stdin, not both");
  if (!from_stdin && paths.empty()) return ctx.term.FailUsage("needs PATH");
  if (from_stdin) {
    auto text = ReadStdin();
    if (!text.ok()) return ctx.term.Fail(text.error());
    paths = Split(*text, ctx.args.has("--null") ? '\0' : '\n');
  }
  auto root = OpenRoot(ctx, NeedsRoot::kKnown);
  if (!root.ok()) return ctx.term.Fail(root.error());
  // What makes no sense in them is said and does not count, as in a rollback.
  const RescueSettings settings = LoadSettingsToRescue(ctx, root->path);
  const GitPlaces git = GitPlacesOf(ctx.env);
  auto request =
      ScanRequestFor(root->store(), *root->catalog, root->root, settings.settings, git);
  if (!request.ok()) return ctx.term.Fail(request.error());
  auto explainer = Explainer::Open(ctx.fs, root->opened->clock, *request);
  if (!explainer.ok()) return ctx.term.Fail(explainer.error());
  for (const std::string& trouble : (*explainer)->trouble()) ctx.term.Warn(trouble);

  JsonWriter json;
  json.BeginObject().Key("paths").BeginArray();
  for (const std::string& path : paths) {
    auto answer = Ask(ctx, root->path, **explainer, path);
    if (!answer.ok())
      return ctx.term.Fail(
          Context(answer.error(), EscapeForDisplay(path.substr(0, 200))));
    if (!ctx.term.json()) {
      ctx.term.Out(StrCat(Line(*answer, path), "\n"));
      continue;
    }
    json.BeginObject();
    json.Key("path").PathValue(path);
    json.Key("covered").Bool(answer->covered);
    json.Key("why").String(answer->why);
    json.Key("rule");
    if (answer->rule.empty())
      json.Null();
    else
      json.PathValue(answer->rule);
    json.Key("link");
    if (answer->link.empty())
      json.Null();
    else
      json.PathValue(answer->link);
    json.EndObject();
  }
  json.EndArray().EndObject();
  if (ctx.term.json()) ctx.term.OutJson(json);
  return ExitCode::kOk;
}

}  // namespace belay
