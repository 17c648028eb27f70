#pragma once

// Settings by which an agent runs no hooks at all, or none of ours.
//
//   Claude Code, Qwen Code  disableAllHooks, of the nearest file that has it
//   Codex                   [features] hooks = false (codex_hooks before) in
//   config.toml Gemini CLI, Qwen Code   hooksConfig.enabled = false of the nearest file
//   that has it;
//                           hooksConfig.disabled or hooks.disabled, of any, with the
//                           name or the command of ours
//
// Nearest: of a project .../settings.local.json (Claude Code alone), then
// .../settings.json, then the user's.

#include <optional>

#include "agent/install_profiles_internal.h"

namespace belay {

// A file that cannot be read, or has another shape, switches nothing off here: what is
// wrong with it is told where hooks are looked for.
std::optional<HooksOff> FindHooksOff(Fs& fs, const InstallPlaces& places,
                                     const AgentProfile& profile);

}  // namespace belay
