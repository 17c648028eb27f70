#pragma once

// `auto = true`: what nobody protected yet, and shall be, where an agent's hook finds
// it. The user's own word alone counts: a project cannot protect itself.

#include <span>
#include <vector>

#include "agent/event.h"
#include "cli/context.h"
#include "store/catalog.h"
#include "store/store.h"

namespace belay {

// Where the event takes place, when nothing is protected there: the whole work tree.
// Where that is not to be, or nobody can have meant it (the home directory): the git
// work trees of what an edit tool names. None where there is none of these.
Result<std::vector<Root>> ProtectNew(CommandContext& ctx, const HookEvent& event);

// Where the event takes place, when that is in no root of `roots` and the session's own
// directory (`home`) is one: what became of that when it is gone, where that is
// certain; of a call that may write, the git work tree that it is made in. (A shell may
// stand anywhere: what is no work tree is not meant by it.) Of an edit tool, where
// nobody can have meant the place, those of what it names. True: the roots are others
// than `roots`.
Result<bool> ProtectAway(CommandContext& ctx, std::span<const RootEntry> roots,
                         const Root& home, const HookEvent& event);

// A git work tree inside a protected directory which that leaves out, where the event
// takes place or which holds what it names (core/left_out_tree.h). True: there is one
// root more than `roots`. `settings` are those of `first`, the event's first root;
// nothing is looked at for an event that takes place in a root itself and names
// nothing.
Result<bool> ProtectLeftOut(CommandContext& ctx, Store& store,
                            std::span<const RootEntry> roots, const Root& first,
                            const Settings& settings, const HookEvent& event);

// Whether the user's own word is that new directories are protected.
bool IsAutoMeant(CommandContext& ctx);

}  // namespace belay
