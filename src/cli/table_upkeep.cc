// The command table: upkeep of the store, and settings.

#include "cli/command_table.h"
#include "cli/commands.h"

namespace belay {

namespace {

// --- upkeep
// ----------------------------------------------------------------------------

constexpr std::string_view kPruneUsage[] = {"prune [--dry-run] [--background]"};
constexpr FlagSpec kPruneFlags[] = {
    {.name = "--dry-run", .help = "show what would go, delete nothing"},
    {.name = "--background", .help = "as a checkpoint starts it: quiet, in no hurry"}};
constexpr Example kPruneExamples[] = {
    {"belay prune --dry-run", "which checkpoints are past their time?"}};

constexpr std::string_view kGcUsage[] = {"gc [--everything]"};
constexpr FlagSpec kGcFlags[] = {
    {.name = "--everything",
     .help = "however little it gives back: what was deleted is then in no file"}};
constexpr Example kGcExamples[] = {
    {"belay gc", "give back what nothing needs any more"},
    {"belay gc --everything", "after `belay delete`, for what must not stay"}};

constexpr std::string_view kDuUsage[] = {"du [--sessions]"};
constexpr FlagSpec kDuFlags[] = {
    {.name = "--sessions", .help = "also what each session takes"}};
constexpr Example kDuExamples[] = {
    {"belay du", "how much disk does the store take?"},
    {"belay du --root ~/project", "and what is there for one root"},
    {"belay du --sessions", "and what would go with each session"}};

constexpr std::string_view kVerifyUsage[] = {"verify [--read-data]"};
constexpr FlagSpec kVerifyFlags[] = {
    {.name = "--read-data",
     .help = "read and check every byte, not only the structure"}};
constexpr Example kVerifyExamples[] = {
    {"belay verify --read-data", "is everything that was stored still whole?"}};

constexpr std::string_view kRepairUsage[] = {"repair [--accept-loss]"};
constexpr FlagSpec kRepairFlags[] = {
    {.name = "--accept-loss",
     .help = "give up what cannot be read, so that belay gc can go on"}};
constexpr Example kRepairExamples[] = {
    {"belay repair", "after `belay verify` found something"},
    {"belay repair --accept-loss", "when it cannot be brought back and gc refuses"}};

constexpr std::string_view kPurgeUsage[] = {
    "purge PATH|--session ID [--everywhere] [--dry-run] [--yes]", "purge --allow PATH"};
constexpr FlagSpec kPurgeFlags[] = {
    {.name = "--session",
     .value = "ID",
     .help = "the checkpoints, prompts and notes of this session, in every directory"},
    {.name = "--everywhere",
     .help = "also content that other paths have, in every protected directory"},
    {.name = "--dry-run", .help = "show what would be erased, erase nothing"},
    {.name = "--yes", .help = "do not ask"},
    {.name = "--allow", .help = "let checkpoints hold PATH again"},
};
constexpr PositionalSpec kPurgeArgs[] = {{.name = "PATH", .optional = true}};
constexpr Example kPurgeExamples[] = {
    {"belay purge .env --dry-run", "what would be erased, and who else has it?"},
    {"belay purge .env", "erase every stored version of a file"},
    {"belay purge secrets/ --everywhere", "and all copies under other names"}};

constexpr std::string_view kExportUsage[] = {
    "export REF... [--session ID] -o FILE [--force]", "export --git NAME REF [-o DIR]",
    "export --notes [--session ID] [--format json|md] [-o FILE]"};
constexpr FlagSpec kExportFlags[] = {
    {.name = "--output",
     .letter = 'o',
     .value = "FILE",
     .help = "the file to write; - is standard output. With --git: the repository, "
             "made as a bare one when it is not there"},
    {.name = "--force", .help = "replace FILE when it is there"},
    {.name = "--session",
     .value = "ID",
     .help =
         "everything of this session; with a REF: where turn: and tool: are sought"},
    {.name = "--git",
     .value = "NAME",
     .help = "as a git commit on the new branch NAME, or the new ref NAME (refs/...)"},
    {.name = "--notes", .help = "names, notes, pins and meta only"},
    {.name = "--format", .value = "json|md", .help = "of the notes; md if not given"},
};
constexpr PositionalSpec kExportArgs[] = {
    {.name = "REF", .optional = true, .many = true}};
constexpr Example kExportExamples[] = {
    {"belay export latest -o state.belay", "take a checkpoint elsewhere"},
    {"belay export 1 2 3 -o - | ssh host 'cat > state.belay'", "send three of them"},
    {"belay export --git before-the-refactoring turn:3",
     "as a branch of this repository"},
    {"belay export --git first 2 -o ~/history.git", "into another repository"},
    {"belay export --notes --format md", "what was written down, as Markdown"},
};

constexpr std::string_view kImportUsage[] = {"import FILE", "import --git REV"};
constexpr FlagSpec kImportFlags[] = {
    {.name = "--git", .value = "REV", .help = "a git commit as a checkpoint"}};
constexpr PositionalSpec kImportArgs[] = {{.name = "FILE", .optional = true}};
constexpr Example kImportExamples[] = {
    {"belay import state.belay", "bring checkpoints in"},
    {"belay import state.belay --root ~/project", "into another project"},
    {"belay import --git v1.2", "the files of a commit, to go back to"}};

constexpr CommandSpec kUpkeep[] = {
    {.name = "verify",
     .summary = "check that the store is whole",
     .usage = kVerifyUsage,
     .about = "Changes nothing that is stored; at most the empty file `lock` is "
              "created. Exits 3 when something is damaged, and says what and which "
              "checkpoints it hits. Works on a read-only disk.",
     .flags = kVerifyFlags,
     .examples = kVerifyExamples,
     .run = CmdVerify,
     .whole_store = true},
    {.name = "repair",
     .summary = "put right what can be put right",
     .usage = kRepairUsage,
     .about =
         "Rebuilds indexes, catalogue and a lost manifest from the packs, brings back "
         "from the catalogue what the packs lost, and replaces damaged packs by whole "
         "copies when nothing is lost by it. Nothing stored is thrown away; what "
         "stays damaged is counted (exit 3), and named by belay verify --read-data.\n\n"
         "With --accept-loss what still cannot be read is given up: it is named once "
         "more, no longer counts as damage, and belay gc goes on. The damaged files "
         "are kept aside; a pack that is put back into packs/ later is taken in by "
         "the next belay repair.",
     .flags = kRepairFlags,
     .examples = kRepairExamples,
     .run = CmdRepair,
     .whole_store = true},
    {.name = "du",
     .summary = "how much disk the store takes",
     .usage = kDuUsage,
     .about =
         "Honest figures: allocated disk, what shares it, what could go. The store is "
         "one for all roots; --root shows the share of one of them. What is only in "
         "one "
         "root or session would be given back if that was deleted.",
     .flags = kDuFlags,
     .examples = kDuExamples,
     .run = CmdDu},
    {.name = "gc",
     .summary = "give back unused space",
     .usage = kGcUsage,
     .about =
         "Removes content that no checkpoint and no undo needs any more. Packs with "
         "little of it are left as they are, unless --everything is given.",
     .flags = kGcFlags,
     .examples = kGcExamples,
     .run = CmdGc,
     .whole_store = true},
    {.name = "prune",
     .summary = "delete checkpoints past their time",
     .usage = kPruneUsage,
     .about =
         "Follows the settings below retention, for every protected directory, and "
         "gives the room back. Manual and pinned checkpoints, each session's first and "
         "newest, and what the last rollbacks need to be undone, stay. Now and then a "
         "checkpoint starts this by itself, in the background.",
     .flags = kPruneFlags,
     .examples = kPruneExamples,
     .run = CmdPrune,
     .whole_store = true},
    {.name = "purge",
     .summary = "erase a file or a session for good",
     .usage = kPurgeUsage,
     .about =
         "For secrets that should not have been stored: every version of the file, or "
         "of all that is below the directory, goes from every file of the store. "
         "Cannot be undone. Content that another path has as well is named, and kept "
         "unless --everywhere. The checkpoints stay and say that it was purged; a "
         "rollback leaves the path alone. If it is still in the directory, checkpoints "
         "leave it out from then on.\n\nNames, sizes and hashes of what was erased "
         "stay. Copies elsewhere (bundles, backups of the store) are not looked for.",
     .flags = kPurgeFlags,
     .args = kPurgeArgs,
     .examples = kPurgeExamples,
     .run = CmdPurge},
    {.name = "export",
     .summary = "take checkpoints elsewhere",
     .usage = kExportUsage,
     .about =
         "Writes checkpoints with all they need to one file, or one as a git "
         "commit, or the notes.\n\nSecrets are left out and named: who rolls back "
         "to an imported checkpoint keeps their own. The same checkpoints give the "
         "same bytes. The file appears when it is whole, and replaces none without "
         "--force.\n\nWith --git the checkpoint becomes a commit whose parent is the "
         "commit that HEAD was at. It holds every file of the checkpoint byte for "
         "byte, "
         "ignored ones too, but no secrets. No branch that is there is moved, and "
         "HEAD, the index and the files stay as they are. For a directory that is in "
         "no "
         "repository, a bare one is made beside it: DIR.git.",
     .flags = kExportFlags,
     .args = kExportArgs,
     .examples = kExportExamples,
     .run = CmdExport},
    {.name = "import",
     .summary = "bring checkpoints in",
     .usage = kImportUsage,
     .about =
         "Reads what `belay export` wrote, on any machine, into the protected "
         "directory. Everything is checked before anything is stored; importing again "
         "changes nothing. The checkpoints keep their ids, names, notes, times and "
         "sessions, come first in belay list, and say in their meta where they come "
         "from. No file of the directory is touched: belay rollback does that.\n\n"
         "With --git the files of a commit become a checkpoint: any revision of the "
         "repository that the directory is in. A commit knows nothing of files that "
         "git "
         "does not track, so it is marked partial: rolling back to it brings its files "
         "back, deletes nothing, and leaves git itself alone.",
     .flags = kImportFlags,
     .args = kImportArgs,
     .examples = kImportExamples,
     .run = CmdImport},
};

// --- settings
// --------------------------------------------------------------------------

constexpr std::string_view kConfigUsage[] = {"config [KEY [VALUE]] [--project]"};
constexpr FlagSpec kConfigFlags[] = {
    {.name = "--project", .help = "write to .belay.toml of the project"}};
constexpr PositionalSpec kConfigArgs[] = {{.name = "KEY", .optional = true},
                                          {.name = "VALUE", .optional = true}};
constexpr Example kConfigExamples[] = {
    {"belay config", "every setting, its value and where it comes from"},
    {"belay config store.cap 20GiB", "change one for yourself"},
    {"belay config exclude '[\"*.iso\", \"tmp/\"]' --project",
     "change one for a project"},
};

constexpr std::string_view kCompletionsUsage[] = {"completions bash|zsh|fish"};
constexpr PositionalSpec kCompletionsArgs[] = {{.name = "bash|zsh|fish"}};
constexpr Example kCompletionsExamples[] = {
    {"source <(belay completions bash)", "in this shell"},
    {"belay completions fish > ~/.config/fish/completions/belay.fish", "for good"},
};

constexpr CommandSpec kSettings[] = {
    {.name = "config",
     .summary = "show and change settings",
     .usage = kConfigUsage,
     .about =
         "Without a KEY lists all settings. With a VALUE writes it to your own "
         "settings file, or to the project's; comments and order stay as they are.",
     .flags = kConfigFlags,
     .args = kConfigArgs,
     .examples = kConfigExamples,
     .run = CmdConfig},
    {.name = "completions",
     .summary = "completions for your shell",
     .usage = kCompletionsUsage,
     .about = "Prints a script for the shell named.",
     .args = kCompletionsArgs,
     .examples = kCompletionsExamples,
     .run = CmdCompletions},
};

}  // namespace

std::span<const CommandSpec> UpkeepCommands() { return kUpkeep; }
std::span<const CommandSpec> SettingCommands() { return kSettings; }

}  // namespace belay
