#include "agent/opencode_copy.h"

#include "agent/native_fork.h"
#include "agent/opencode_export.h"
#include "agent/rewind_internal.h"
#include "base/escape.h"
#include "restore/fork_note.h"

namespace belay {

Error NamingCopy(Error error, const std::string& session) {
  error.what += "; nothing uses a copy " + EscapeText(session) +
                " that may be among its sessions";
  return error;
}

Result<MovedCopy> MakeOpencodeCopy(const ForkMaker& maker, const OpencodeMove& move,
                                   const std::string& whose) {
  Store& store = maker.store;
  const std::string name(AgentName(AgentKind::kOpencode));
  const auto program = FindProgram(name, maker.programs.exec_path);
  if (!program) return Error(Errc::kNotFound, name + " is not in PATH");
  BELAY_TRY(const AbsPath cwd, AbsPath::Parse(move.cwd));
  NativeForkRequest asked{.program = *program,
                          .environment = maker.programs.environment,
                          .directory = cwd,
                          .session = move.session,
                          .timeout_ms = maker.timeout_ms};
  // Nothing is made by that: it needs no note.
  BELAY_TRY(const std::string exported, ExportByOpencode(asked));
  BELAY_TRY(const OpencodeCopy copy,
            PlanOpencodeCopy(exported,
                             {.session = move.session,
                              .message = move.message,
                              .from = move.from,
                              .to = move.to,
                              .cwd = move.cwd,
                              .now_ms = store.clock().WallMillis()},
                             store.random()));
  MovedCopy out{.session = {}, .kept = copy.kept, .taken = copy.taken};
  if (copy.kept == 0) return out;
  BELAY_OK(NoteFork(
      store, maker.root,
      {.agent = name, .session = whose, .forked = copy.session, .pid = maker.pid}));
  BELAY_TRY(const RelPath file, WriteForkFile(store, maker.root, copy.content));
  out.session = asked.session = copy.session;
  Status taken = ImportByOpencode(asked, maker.store_dir.Join(file));
  RemoveForkFile(store, maker.root);
  if (!taken.ok()) return NamingCopy(std::move(taken).error(), copy.session);
  return out;
}

}  // namespace belay
