// The command table: what people use every day.

#include "cli/command_table.h"
#include "cli/commands.h"

namespace belay {

namespace {

constexpr PositionalSpec kRef[] = {{.name = "REF"}};
constexpr PositionalSpec kOptionalDir[] = {{.name = "DIR", .optional = true}};

// --- protect
// ---------------------------------------------------------------------------

constexpr std::string_view kOnUsage[] = {"on [DIR] [--moved-from OLD] [--force]"};
constexpr FlagSpec kOnFlags[] = {
    {.name = "--moved-from",
     .value = "OLD",
     .help = "the directory was at OLD before; keep its history"},
    {.name = "--force", .help = "even for a home directory or /"},
};
constexpr Example kOnExamples[] = {
    {"belay on", "protect the current directory"},
    {"belay on ~/new/app --moved-from ~/app", "go on with the history of a moved one"},
};

constexpr std::string_view kOffUsage[] = {"off [DIR] [--forget [--yes]]"};
constexpr FlagSpec kOffFlags[] = {
    {.name = "--forget", .help = "delete its history too, after asking"},
    {.name = "--yes", .help = "do not ask"},
};
constexpr Example kOffExamples[] = {
    {"belay off", "stop protecting the current directory, keep its history"},
    {"belay off ~/old --forget", "and delete all its checkpoints"},
};

constexpr std::string_view kRootsUsage[] = {"roots [--all]"};
constexpr FlagSpec kRootsFlags[] = {
    {.name = "--all", .help = "also those whose history alone is left"}};
constexpr Example kRootsExamples[] = {
    {"belay roots", "all protected directories, with last checkpoint and size"}};

constexpr std::string_view kCheckpointUsage[] = {
    "checkpoint [-m NAME] [--note TEXT] [--session ID] [--message ID] [--meta K=V]..."};
constexpr FlagSpec kCheckpointFlags[] = {
    {.name = "--name", .letter = 'm', .value = "NAME", .help = "a name to find it by"},
    {.name = "--note", .value = "TEXT", .help = "a note to keep with it"},
    {.name = "--session",
     .value = "ID",
     .help = "the session it belongs to; else the one at work there"},
    {.name = "--message", .value = "ID", .help = "the message it belongs to"},
    {.name = "--meta",
     .value = "K=V",
     .help = "a key and value of your own",
     .repeatable = true},
};
constexpr Example kCheckpointExamples[] = {
    {"belay checkpoint -m before-upgrade", "keep this moment under a name"},
    {"id=$(belay checkpoint -q)", "in a script: the id alone"},
};

constexpr CommandSpec kProtect[] = {
    {.name = "on",
     .summary = "protect a directory",
     .usage = kOnUsage,
     .about = "Registers DIR, or the current directory, as protected. It takes no "
              "checkpoint yet; agents' hooks and `belay checkpoint` do.",
     .flags = kOnFlags,
     .args = kOptionalDir,
     .examples = kOnExamples,
     .run = CmdOn},
    {.name = "off",
     .summary = "stop protecting a directory",
     .usage = kOffUsage,
     .about =
         "Its history stays, unless --forget is given. Without DIR it is the protected "
         "directory around the current one.",
     .flags = kOffFlags,
     .args = kOptionalDir,
     .examples = kOffExamples,
     .run = CmdOff},
    {.name = "roots",
     .summary = "list the protected directories",
     .usage = kRootsUsage,
     .about = "Every protected directory with its last checkpoint, size and state.",
     .flags = kRootsFlags,
     .examples = kRootsExamples,
     .run = CmdRoots},
    {.name = "checkpoint",
     .summary = "keep the present state",
     .usage = kCheckpointUsage,
     .about =
         "Makes a manual checkpoint, even when nothing changed. Without --session it "
         "belongs to the session that is active here, if there is one. With -q it "
         "prints the id alone.",
     .flags = kCheckpointFlags,
     .examples = kCheckpointExamples,
     .run = CmdCheckpoint},
};

// --- look
// ------------------------------------------------------------------------------

constexpr std::string_view kStatusUsage[] = {"status"};
constexpr Example kStatusExamples[] = {
    {"belay status", "is this directory protected, and is all well?"},
    {"belay status --json --root ~/app", "the same of another directory, for a script"},
};

constexpr std::string_view kListUsage[] = {
    "list [--session ID] [--all] [-n N] [--kind auto|manual|safety] [--tools] "
    "[--graph]"};
constexpr FlagSpec kListFlags[] = {
    {.name = "--session", .value = "ID", .help = "only of this session"},
    {.name = "--all", .help = "also what was taken back"},
    {.name = "--number", .letter = 'n', .value = "N", .help = "at most N"},
    {.name = "--kind", .value = "auto|manual|safety", .help = "only of this kind"},
    {.name = "--tools", .help = "every tool call, not folded into turns"},
    {.name = "--graph", .help = "draw the history as a tree"},
};
constexpr Example kListExamples[] = {
    {"belay list -n 5", "the five newest checkpoints"},
    {"belay list --kind manual", "only those you made yourself"},
    {"belay list --graph", "rollbacks as branches"},
};

constexpr FlagSpec kSessionOfRef = {
    .name = "--session", .value = "ID", .help = "whose turn: or tool: a REF means"};

constexpr std::string_view kShowUsage[] = {"show REF [--session ID]", "show SESSION",
                                           "show --session ID"};
constexpr FlagSpec kShowFlags[] = {kSessionOfRef};
constexpr PositionalSpec kRefOrNone[] = {{.name = "REF", .optional = true}};
constexpr Example kShowExamples[] = {
    {"belay show latest", "all about the newest one"},
    {"belay show '@{10 minutes ago}' -v", "of then, with all paths"},
    {"belay show 7c3e9a52-0b1d-4f6e-9d2a-5e8b1c4f7a60", "one conversation"},
};

constexpr std::string_view kLsUsage[] = {"ls REF [PATH] [-l] [-z] [--session ID]"};
constexpr FlagSpec kLsFlags[] = {
    {.name = "--long", .letter = 'l', .help = "with mode, owner and size"},
    {.name = "--null",
     .letter = 'z',
     .help = "names as they are, each with a NUL byte at its end"},
    kSessionOfRef,
};
constexpr PositionalSpec kLsArgs[] = {{.name = "REF"},
                                      {.name = "PATH", .optional = true}};
constexpr Example kLsExamples[] = {
    {"belay ls 3 src", "the files below src in the third newest checkpoint"},
    {"belay ls now -l", "what a checkpoint would hold, made right now"},
};

constexpr std::string_view kCatUsage[] = {"cat REF PATH [--reveal] [--session ID]"};
constexpr FlagSpec kCatFlags[] = {
    {.name = "--reveal", .help = "show it even if it may hold a secret"},
    kSessionOfRef,
};
constexpr PositionalSpec kCatArgs[] = {{.name = "REF"}, {.name = "PATH"}};
constexpr Example kCatExamples[] = {{"belay cat latest src/app.ts > app.ts.before",
                                     "get one file out of a checkpoint"}};

constexpr std::string_view kDiffUsage[] = {
    "diff A [B] [--stat] [--name-only] [--side-by-side] [--word] "
    "[--word-porcelain] [--text] [--no-renames] [--null] [--against DIR] "
    "[--session ID] [-- PATH...]"};
constexpr FlagSpec kDiffFlags[] = {
    {.name = "--stat", .help = "only how much changed in each file"},
    {.name = "--name-only", .help = "only the paths"},
    {.name = "--side-by-side", .help = "old and new next to each other"},
    {.name = "--word", .help = "mark changed words: [-old-]{+new+}, or by colour"},
    {.name = "--word-porcelain",
     .help = "the same for programs, and for texts that hold such marks themselves: a "
             "piece a line behind ' ', - or +, and ~ for the end of a line, as git's "
             "--word-diff=porcelain"},
    {.name = "--text", .letter = 'a', .help = "show binary files as text too"},
    {.name = "--no-renames", .help = "show a renamed file as deleted and new"},
    {.name = "--null", .letter = 'z', .help = "end paths with NUL (with --name-only)"},
    {.name = "--against",
     .value = "DIR",
     .help = "B is of that protected directory: a fork, or any other"},
    kSessionOfRef,
};
constexpr PositionalSpec kDiffArgs[] = {{.name = "A"}, {.name = "B", .optional = true}};
constexpr Example kDiffExamples[] = {
    {"belay diff turn:3", "what changed since prompt 3"},
    {"belay diff 2 1 -- src", "between two checkpoints, below src"},
    {"belay diff latest --stat", "how much changed in each file"},
    {"belay diff now --against ../other-way", "this directory and a fork, as they are"},
};

constexpr std::string_view kLogUsage[] = {"log [-- PATH...]"};
constexpr Example kLogExamples[] = {
    {"belay log", "what Belay did here"},
    {"belay log -- README.md", "who changed this file, and when"},
    {"belay log -- 'src/*.ts'", "the same of all that the pattern matches"},
};

constexpr std::string_view kSearchUsage[] = {"search WORDS... [--session ID] [-n N]"};
constexpr FlagSpec kSearchFlags[] = {
    {.name = "--session", .value = "ID", .help = "only of this session"},
    {.name = "--number",
     .letter = 'n',
     .value = "N",
     .help = "at most N; 20 if not given"},
};
constexpr PositionalSpec kWords[] = {{.name = "WORDS", .many = true}};
constexpr Example kSearchExamples[] = {
    {"belay search login form", "checkpoints that mention both words"},
    {"belay search '\"login form\"' src/app", "the phrase, and a path that begins so"},
};

constexpr CommandSpec kLook[] = {
    {.name = "status",
     .summary = "is this directory protected?",
     .usage = kStatusUsage,
     .about =
         "Says whether the directory is protected, when its last checkpoint was made, "
         "what went wrong lately and what keeps the next one from being made (exit 1). "
         "Makes no store and no checkpoint; an interrupted rollback is ended first, "
         "and "
         "the catalogue of a store is brought up to date.",
     .examples = kStatusExamples,
     .run = CmdStatus},
    {.name = "list",
     .summary = "list checkpoints, newest first",
     .usage = kListUsage,
     .about = "Numbers every checkpoint; other commands take that number as a REF. The "
              "checkpoints of one turn are folded into one line.",
     .flags = kListFlags,
     .examples = kListExamples,
     .run = CmdList},
    {.name = "show",
     .summary = "everything about one checkpoint or session",
     .usage = kShowUsage,
     .about =
         "Shows where a checkpoint came from, the rules it was made by, what changed "
         "since the one before it, and what was left out. Long lists are cut; -v shows "
         "all of them. REF is a number of `belay list`, a name, an id, latest, or a "
         "time: @{5 minutes ago}, @{2 months ago}, @{yesterday 9:00}, @{last friday}, "
         "@{noon}, @{2026-03-09 21:15}, @{9 Mar 2026} and the other words that git "
         "takes "
         "for dates. A time means the newest checkpoint made until the end of what it "
         "names, that minute, second or day included.\n\n"
         "Of a session it shows the turns with what was said in them, the checkpoints "
         "that belong to each, and what of it was taken back; long turns are cut, -v "
         "shows all. A checkpoint with the same name comes first: --session ID alone "
         "means the session.",
     .flags = kShowFlags,
     .args = kRefOrNone,
     .examples = kShowExamples,
     .run = CmdShow},
    {.name = "ls",
     .summary = "the files of a checkpoint",
     .usage = kLsUsage,
     .about = "Lists the files a checkpoint holds, all or below PATH, one a line, and "
              "empty directories. The REF now is the directory as it is; nothing is "
              "stored for that. PATH counts from the current directory, or from the "
              "root when you are elsewhere.",
     .flags = kLsFlags,
     .args = kLsArgs,
     .examples = kLsExamples,
     .run = CmdLs},
    {.name = "cat",
     .summary = "one file of a checkpoint",
     .usage = kCatUsage,
     .about = "Writes the bytes of one file to standard output, exactly; of a symlink, "
              "where it points. What may hold a secret needs --reveal. PATH counts "
              "from the current directory, or from the root when you are elsewhere.",
     .flags = kCatFlags,
     .args = kCatArgs,
     .examples = kCatExamples,
     .run = CmdCat},
    {.name = "diff",
     .summary = "what changed between two states",
     .usage = kDiffUsage,
     .about =
         "Compares A with B, or with the directory as it is now; either may be the "
         "word "
         "now. The output can be applied with git apply and patch. Binary files are "
         "marked; of what may hold a secret only hash and size are shown; lines that "
         "begin with # say what a patch cannot. Nothing is stored.\n\n"
         "PATH means itself and all below it, and may be a glob. On a terminal the "
         "output is coloured and paged: BELAY_PAGER, else PAGER, else less; cat for "
         "none.",
     .flags = kDiffFlags,
     .args = kDiffArgs,
     .rest = "PATH",
     .examples = kDiffExamples,
     .run = CmdDiff},
    {.name = "log",
     .summary = "what was done, and by whom",
     .usage = kLogUsage,
     .about = "Lists rollbacks and other operations; with paths, the changes of those "
              "paths with their authors.",
     .rest = "PATH",
     .examples = kLogExamples,
     .run = CmdLog},
    {.name = "search",
     .summary = "find checkpoints by words",
     .usage = kSearchUsage,
     .about =
         "Looks in names, notes, descriptions, prompts and the paths that changed (the "
         "first 100 of each checkpoint). All words must be there; the last one, and "
         "one "
         "with a * behind it, may be the beginning of a word; words in double quotes "
         "follow each other. The best come first: names, then notes, then the rest. "
         "Symbols, and parts of words in scripts that put no blanks between them, are "
         "looked for in the newest 10,000 checkpoints when no whole word is found.",
     .flags = kSearchFlags,
     .args = kWords,
     .examples = kSearchExamples,
     .run = CmdSearch},
};

// --- go back
// ---------------------------------------------------------------------------

constexpr std::string_view kRollbackUsage[] = {
    "rollback REF [--session ID] [--code|--chat|--both] [--dry-run] [--yes] "
    "[--exact|--keep-outside] "
    "[--git reset|revert|keep] [--switch] [--git-nested] [--delete-ignored] "
    "[--external-files] [--skip-damaged] [--preserve-times] [--force] [--hunks N,...] "
    "[-- PATH...]"};
constexpr FlagSpec kRollbackFlags[] = {
    kSessionOfRef,
    {.name = "--code", .help = "the files (the default)"},
    {.name = "--chat", .help = "the conversation"},
    {.name = "--both", .help = "files and conversation, or neither"},
    {.name = "--dry-run", .help = "show the plan, change nothing"},
    {.name = "--yes", .help = "do not ask"},
    {.name = "--exact", .help = "take back changes made by others too"},
    {.name = "--keep-outside", .help = "keep changes made by others"},
    {.name = "--git", .value = "reset|revert|keep", .help = "what to do with commits"},
    {.name = "--switch", .help = "go back to the branch of that time"},
    {.name = "--git-nested", .help = "git in nested repositories too"},
    {.name = "--delete-ignored", .help = "remove what only today's rules protect"},
    {.name = "--external-files", .help = "files outside that an edit tool named"},
    {.name = "--skip-damaged", .help = "leave out what cannot be read any more"},
    {.name = "--preserve-times", .help = "give files the time of the checkpoint"},
    {.name = "--force", .help = "even where a rollback would be refused"},
    {.name = "--hunks",
     .value = "N,...",
     .help = "only these hunks of the diff",
     .available = false},
};
constexpr Example kRollbackExamples[] = {
    {"belay rollback 1 --dry-run", "what would happen?"},
    {"belay rollback turn:3 --yes", "back to before prompt 3"},
    {"belay rollback turn:3 --both", "files and conversation as they were then"},
    {"belay rollback latest -- src/app.ts", "one file only"},
    {"belay rollback latest -- 'src/*.ts'", "every .ts file below src"},
};

constexpr std::string_view kUndoUsage[] = {
    "undo [OPERATION] [--exact] [--skip-damaged]"};
constexpr FlagSpec kUndoFlags[] = {
    {.name = "--exact", .help = "also where a file changed since"},
    {.name = "--skip-damaged", .help = "leave out what cannot be read any more"}};
constexpr PositionalSpec kUndoArgs[] = {{.name = "OPERATION", .optional = true}};
constexpr Example kUndoExamples[] = {{"belay undo", "take back the last rollback"}};

constexpr std::string_view kRedoUsage[] = {"redo [--exact] [--skip-damaged]"};
constexpr Example kRedoExamples[] = {{"belay redo", "take back the last undo"}};

constexpr std::string_view kRevertUsage[] = {
    "revert turn:N|tool:ID|session:ID|REF..REF [--dry-run] [--yes] "
    "[--conflict=mark|ours|theirs] [--created keep|delete] [--hunks N,...]"};
constexpr FlagSpec kRevertFlags[] = {
    {.name = "--dry-run", .help = "show the plan, change nothing"},
    {.name = "--yes", .help = "do not ask"},
    {.name = "--conflict",
     .value = "mark|ours|theirs",
     .help = "where later changes overlap"},
    {.name = "--created", .value = "keep|delete", .help = "files that were new then"},
    {.name = "--hunks", .value = "N,...", .help = "only these hunks of the diff"},
};
constexpr PositionalSpec kRevertArgs[] = {{.name = "CHANGES"}};
constexpr Example kRevertExamples[] = {
    {"belay revert turn:4", "take out what prompt 4 did, keep all that came later"}};

constexpr std::string_view kNoteUsage[] = {
    "note REF TEXT",
    "note REF [TEXT] [--name NAME|--no-name] [--meta K=V]... [--session ID]"};
constexpr FlagSpec kNoteFlags[] = {
    {.name = "--name", .letter = 'm', .value = "NAME", .help = "give it another name"},
    {.name = "--no-name", .help = "take its name away"},
    {.name = "--meta",
     .value = "K=V",
     .help = "a key and value of your own; without V the key goes",
     .repeatable = true},
    kSessionOfRef,
};
constexpr PositionalSpec kNoteArgs[] = {
    {.name = "REF"}, {.name = "TEXT", .optional = true, .many = true}};
constexpr Example kNoteExamples[] = {
    {"belay note latest 'tests pass here'", "write something down"},
    {"belay note 3 ''", "take the note away"},
    {"belay note 3 --name before-upgrade", "give it another name"},
};

constexpr FlagSpec kRefFlags[] = {kSessionOfRef};
constexpr std::string_view kPinUsage[] = {"pin REF [--session ID]"};
constexpr Example kPinExamples[] = {{"belay pin 1", "keep the newest for ever"}};
constexpr std::string_view kUnpinUsage[] = {"unpin REF [--session ID]"};
constexpr Example kUnpinExamples[] = {
    {"belay unpin 1", "let it go when its time comes"}};
constexpr std::string_view kDeleteUsage[] = {"delete REF... [--yes] [--session ID]"};
constexpr FlagSpec kDeleteFlags[] = {
    {.name = "--yes", .help = "do not ask"},
    kSessionOfRef,
};
constexpr PositionalSpec kRefs[] = {{.name = "REF", .many = true}};
constexpr Example kDeleteExamples[] = {
    {"belay delete 7", "delete one checkpoint, after asking"},
    {"belay delete 7 8 --yes", "two, without"},
};

constexpr CommandSpec kGoBack[] = {
    {.name = "rollback",
     .summary = "take the directory back to a checkpoint",
     .usage = kRollbackUsage,
     .about =
         "Shows what would change, asks, and rolls back, all or nothing. What is "
         "overwritten or deleted is stored first; `belay undo` brings it back. With "
         "paths only those are touched, and git is left alone. A path means itself and "
         "all below it, and may be a glob, quoted from the shell: `*` also crosses `/` "
         "('*.ts' is every .ts file, 'src/*.ts' every one below src), `?` and `[a-z]` "
         "stand for one character. What exists under such a name is meant itself.",
     .flags = kRollbackFlags,
     .args = kRef,
     .rest = "PATH",
     .examples = kRollbackExamples,
     .run = CmdRollback},
    {.name = "undo",
     .summary = "take back a rollback",
     .usage = kUndoUsage,
     .about =
         "Steps back over one rollback, revert, rewind or summary at a time, without "
         "asking. A conversation that was taken back goes on as the original again, "
         "all of it; the copy stays, and `belay redo` goes on with that.",
     .flags = kUndoFlags,
     .args = kUndoArgs,
     .examples = kUndoExamples,
     .run = CmdUndo},
    {.name = "redo",
     .summary = "take back an undo",
     .usage = kRedoUsage,
     .about = "Steps forward again after `belay undo`.",
     .flags = kUndoFlags,
     .examples = kRedoExamples,
     .run = CmdRedo},
    {.name = "revert",
     .summary = "take out some changes, keep all later ones",
     .usage = kRevertUsage,
     .about =
         "Takes the changes of a turn, a tool call, a session or a range out of the "
         "present files and keeps everything else.",
     .flags = kRevertFlags,
     .args = kRevertArgs,
     .examples = kRevertExamples},
    {.name = "note",
     .summary = "write a note on a checkpoint",
     .usage = kNoteUsage,
     .about =
         "A note is shown by `belay show` and found by `belay search`; it can be "
         "changed at any time, and an empty TEXT takes it away. Names and meta too.",
     .flags = kNoteFlags,
     .args = kNoteArgs,
     .examples = kNoteExamples,
     .run = CmdNote},
    {.name = "pin",
     .summary = "keep a checkpoint for ever",
     .usage = kPinUsage,
     .about = "A pinned checkpoint is neither pruned nor deleted.",
     .flags = kRefFlags,
     .args = kRef,
     .examples = kPinExamples,
     .run = CmdPin},
    {.name = "unpin",
     .summary = "release a pinned checkpoint",
     .usage = kUnpinUsage,
     .about = "The checkpoint may be pruned again.",
     .flags = kRefFlags,
     .args = kRef,
     .examples = kUnpinExamples,
     .run = CmdUnpin},
    {.name = "delete",
     .summary = "delete a checkpoint",
     .usage = kDeleteUsage,
     .about = "Shows what it is about to delete and asks; where nobody can be asked it "
              "needs --yes. A pinned one is refused. `belay undo` keeps what it needs, "
              "also when a safety checkpoint goes. The space comes back with the next "
              "`belay gc`.",
     .flags = kDeleteFlags,
     .args = kRefs,
     .examples = kDeleteExamples,
     .run = CmdDelete},
};

}  // namespace

std::span<const CommandSpec> ProtectCommands() { return kProtect; }
std::span<const CommandSpec> LookCommands() { return kLook; }
std::span<const CommandSpec> GoBackCommands() { return kGoBack; }

}  // namespace belay
