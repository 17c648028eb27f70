// The command table: conversations, investigations, agents and pages.

#include "cli/command_table.h"
#include "cli/commands.h"

namespace belay {

namespace {

constexpr PositionalSpec kSession[] = {{.name = "SESSION"}};

// --- conversations
// ---------------------------------------------------------------------

constexpr std::string_view kSessionsUsage[] = {"sessions [--all]",
                                               "sessions transcript ID [--copy N]",
                                               "sessions delete ID [--yes]"};
constexpr FlagSpec kSessionsFlags[] = {
    {.name = "--all", .help = "of every protected directory, not of this one alone"},
    {.name = "--copy",
     .value = "N",
     .help = "another copy than the newest, by its number in --json"},
    {.name = "--yes", .help = "do not ask"}};
constexpr PositionalSpec kSessionsArgs[] = {
    {.name = "transcript|delete", .optional = true}, {.name = "ID", .optional = true}};
constexpr Example kSessionsExamples[] = {
    {"belay sessions", "the conversations held here"},
    {"belay sessions transcript 7c3e9a52-0b1d-4f6e-9d2a-5e8b1c4f7a60 >talk.jsonl",
     "the copy of one that the agent deleted"},
    {"belay sessions delete 7c3e9a52-0b1d-4f6e-9d2a-5e8b1c4f7a60",
     "delete one with its checkpoints"}};

constexpr std::string_view kRewindUsage[] = {
    "rewind SESSION --to MESSAGE|turn:N [--dry-run]"};
constexpr FlagSpec kRewindFlags[] = {
    {.name = "--to", .value = "MESSAGE", .help = "a message id, or turn:N"},
    {.name = "--dry-run", .help = "say what would be taken back, and do nothing"}};
constexpr Example kRewindExamples[] = {
    {"belay rewind 4f1c --to turn:3", "the conversation as it was before prompt 3"}};

constexpr std::string_view kForkUsage[] = {"fork REF DIR [--session ID] [--no-chat]"};
constexpr FlagSpec kForkFlags[] = {
    {.name = "--session",
     .value = "ID",
     .help = "whose turn:N, tool:ID and conversation are meant; else those of the "
             "latest session"},
    {.name = "--no-chat", .help = "the files alone"}};
constexpr PositionalSpec kForkArgs[] = {{.name = "REF"}, {.name = "DIR"}};
constexpr Example kForkExamples[] = {
    {"belay fork turn:3 ../other-way", "try something else from there"}};

constexpr std::string_view kSummarizeUsage[] = {
    "summarize SESSION --from|--to turn:N [--dry-run]"};
constexpr FlagSpec kSummarizeFlags[] = {
    {.name = "--from", .value = "TURN", .help = "turn:N: its prompt and all after it"},
    {.name = "--to", .value = "TURN", .help = "turn:N: all before its prompt"},
    {.name = "--dry-run", .help = "say what would be replaced, and do nothing"},
};
constexpr Example kSummarizeExamples[] = {
    {"belay summarize 4f1c --to turn:9", "turns 1 to 8 become a summary"},
    {"belay summarize 4f1c --from turn:5", "turn 5 and all after it do"},
    {"belay summarize 4f1c --from turn:3 --to turn:6 --dry-run",
     "what would stand for turns 3 to 5"}};

constexpr std::string_view kResumeUsage[] = {"resume SESSION [--dry-run] [-- ARG...]"};
constexpr FlagSpec kResumeFlags[] = {
    {.name = "--dry-run", .help = "print the command, and do not run it"}};
constexpr Example kResumeExamples[] = {
    {"belay resume 4f1c", "go on with a conversation in its own agent"},
    {"belay resume 4f1c -- -p 'go on'", "with arguments of the agent's"}};

constexpr CommandSpec kConversations[] = {
    {.name = "sessions",
     .summary = "list conversations, print or delete one",
     .usage = kSessionsUsage,
     .about =
         "A session that was forked from another, or is resumed under another id, has "
         "the turns until then as its own: turn:N and --session count them too.\n\n"
         "A session is running while its agent is in a turn, ended when the agent said "
         "so, and open otherwise. The size is that of the copy of its conversation; "
         "belay du --sessions has that of its checkpoints. What was said in one: belay "
         "show ID.\n\n"
         "With transcripts = \"keep\" a copy is kept of the file in which the agent "
         "keeps a conversation, as it grows; transcript prints it.\n\n"
         "Deleting a session deletes its checkpoints in every directory, unless they "
         "are pinned, or shared: a session that grew out of it has them in its "
         "history.\n\nWhat it wrote and was told may stay in the store's files until "
         "they are collected; belay purge --session erases it for good.",
     .flags = kSessionsFlags,
     .args = kSessionsArgs,
     .examples = kSessionsExamples,
     .run = CmdSessions},
    {.name = "rewind",
     .summary = "take a conversation back",
     .usage = kRewindUsage,
     .about =
         "The conversation goes on from before the prompt or message given, in a copy "
         "under an id of its own that the agent resumes; the original stays as it is. "
         "The files stay, too: for both, belay rollback --both. belay undo makes the "
         "original the one that goes on again.\n\nSESSION may be the beginning of an "
         "id. A session that is open in a terminal does not notice: leave it, and go "
         "on with belay resume. What works with which agent: docs/conversation.md.",
     .flags = kRewindFlags,
     .args = kSession,
     .examples = kRewindExamples,
     .run = CmdRewind},
    {.name = "fork",
     .summary = "a checkpoint as a new directory",
     .usage = kForkUsage,
     .about =
         "Makes DIR, which must not be there or be empty, with the files of a "
         "checkpoint, and protects it: a root of its own whose first checkpoint is "
         "that "
         "state. Where the state has a git repository DIR gets one of its own, with "
         "the objects of this one and HEAD, branches, tags, stash, index and what was "
         "under way as they were; hooks, nested repositories and submodules are not "
         "copied. This directory is only read.\n\nThe conversation goes along: a copy "
         "under an id of its own, cut where the files are, whose paths lead to DIR; "
         "the "
         "agent resumes it there. The original stays and goes on.\n\nAll of it comes "
         "at once, or "
         "nothing; what an interrupted one left is finished or removed by the next "
         "belay fork.",
     .flags = kForkFlags,
     .args = kForkArgs,
     .examples = kForkExamples,
     .run = CmdFork},
    {.name = "summarize",
     .summary = "shorten part of a conversation",
     .usage = kSummarizeUsage,
     .about =
         "In a copy of the conversation under an id of its own, which the agent "
         "resumes, a summary stands for a part of it; the original and the files stay "
         "as they are. belay undo makes the original the one that goes on "
         "again.\n\nThe summary is what the command in hooks.summarize answers to the "
         "messages on its input (your own settings alone; docs/conversation.md, "
         "\"Summaries\"); without one it is an extract: prompts, files changed, "
         "commands run, last answers. A command that fails, is late or says nothing "
         "changes nothing.\n\nFor Claude Code, Codex, Gemini CLI, Qwen Code and "
         "Copilot CLI. SESSION may be the beginning of an id.",
     .flags = kSummarizeFlags,
     .args = kSession,
     .examples = kSummarizeExamples,
     .run = CmdSummarize},
    {.name = "resume",
     .summary = "go on with a conversation",
     .usage = kResumeUsage,
     .about =
         "Starts the session's own agent with that conversation, in the directory "
         "where it worked. Of one that was taken back (rewind, rollback --chat or "
         "--both) that is the copy that goes on; after belay undo the original again. "
         "With --json it says so, and starts nothing.",
     .flags = kResumeFlags,
     .args = kSession,
     .rest = "ARG",
     .examples = kResumeExamples,
     .run = CmdResume},
};

// --- find out
// --------------------------------------------------------------------------

constexpr std::string_view kBlameUsage[] = {"blame FILE[:FROM-TO]"};
constexpr PositionalSpec kBlameArgs[] = {{.name = "FILE"}};
constexpr Example kBlameExamples[] = {
    {"belay blame src/app.ts:10-20", "who wrote these lines, in answer to what"}};

constexpr std::string_view kBisectUsage[] = {
    "bisect [--from REF] [--to REF] -- COMMAND..."};
constexpr FlagSpec kBisectFlags[] = {
    {.name = "--from", .value = "REF", .help = "where the command still succeeded"},
    {.name = "--to", .value = "REF", .help = "where it failed"},
};
constexpr Example kBisectExamples[] = {
    {"belay bisect -- npm test", "which change broke the tests?"}};

constexpr std::string_view kTryUsage[] = {"try REF -- COMMAND..."};
constexpr PositionalSpec kTryArgs[] = {{.name = "REF"}};
constexpr Example kTryExamples[] = {
    {"belay try turn:3 -- make test", "did it work back then?"}};

constexpr std::string_view kRunCheckUsage[] = {"run-check -- COMMAND..."};
constexpr Example kRunCheckExamples[] = {
    {"belay run-check -- make test", "remember that this state passes"}};

constexpr std::string_view kWhyUsage[] = {"why PATH...", "why --stdin [-z]"};
constexpr FlagSpec kWhyFlags[] = {
    {.name = "--stdin", .help = "read the paths from standard input, one a line"},
    {.name = "--null", .letter = 'z', .help = "paths end with a NUL byte"},
};
constexpr PositionalSpec kWhyArgs[] = {
    {.name = "PATH", .optional = true, .many = true}};
constexpr Example kWhyExamples[] = {
    {"belay why .env dist/app.js", "covered or not, and the rule that decided"},
    {"git ls-files -z | belay why --stdin -z", "of many"},
};

constexpr std::string_view kDoctorUsage[] = {"doctor [--dry-run]"};
constexpr FlagSpec kDoctorFlags[] = {
    {.name = "--dry-run", .help = "repair nothing, only look"}};
constexpr Example kDoctorExamples[] = {
    {"belay doctor", "what is covered here, and what is in the way"}};

constexpr std::string_view kStatsUsage[] = {"stats [--all]"};
constexpr FlagSpec kStatsFlags[] = {
    {.name = "--all", .help = "of all protected directories together"}};
constexpr Example kStatsExamples[] = {{"belay stats", "how often, and how fast"}};

constexpr CommandSpec kInvestigate[] = {
    {.name = "why",
     .summary = "is a path covered, and by which rule?",
     .usage = kWhyUsage,
     .about = "Answers for every path given, whether it exists or not. A path with a "
              "slash at its end is a directory. Of several rules the one that counts "
              "most is named, as FILE:LINE:PATTERN.",
     .flags = kWhyFlags,
     .args = kWhyArgs,
     .examples = kWhyExamples,
     .run = CmdWhy},
    {.name = "blame",
     .summary = "who wrote this line?",
     .usage = kBlameUsage,
     .about = "Names the session, turn and tool call that each line comes from.",
     .args = kBlameArgs,
     .examples = kBlameExamples},
    {.name = "bisect",
     .summary = "which change broke a command?",
     .usage = kBisectUsage,
     .about = "Runs the command in scratch copies of states in between until the first "
              "failing one is found. The directory itself is not touched.",
     .flags = kBisectFlags,
     .rest = "COMMAND",
     .examples = kBisectExamples},
    {.name = "try",
     .summary = "run a command in an old state",
     .usage = kTryUsage,
     .about = "Runs the command in a scratch copy of one checkpoint.",
     .args = kTryArgs,
     .rest = "COMMAND",
     .examples = kTryExamples},
    {.name = "run-check",
     .summary = "record whether a command succeeds",
     .usage = kRunCheckUsage,
     .about =
         "Runs the command and keeps pass or fail with a checkpoint; the newest that "
         "passed is the REF last-good.",
     .rest = "COMMAND",
     .examples = kRunCheckExamples},
    {.name = "doctor",
     .summary = "explain what is covered and what is wrong",
     .usage = kDoctorUsage,
     .about =
         "Tells what is covered here and what is left out, which settings count and "
         "where they come from, which agents are connected, and what the file system "
         "can do. Exits 1 when something is in the way.\n\nLines of your own settings "
         "file that make no sense are repaired: each becomes a comment, so nothing "
         "you wrote is lost, and the default counts. A project's file is only "
         "reported.",
     .flags = kDoctorFlags,
     .examples = kDoctorExamples,
     .run = CmdDoctor},
    {.name = "stats",
     .summary = "figures of your own use",
     .usage = kStatsUsage,
     .about =
         "Success rate of rollbacks, share of sessions that needed one, and how long "
         "checkpoints and rollbacks take. Local, sent nowhere. A figure that too few "
         "samples would make up is not given.",
     .flags = kStatsFlags,
     .examples = kStatsExamples,
     .run = CmdStats},
};

// --- agents and pages
// ------------------------------------------------------------------

constexpr PositionalSpec kAgents[] = {
    {.name = "claude|codex|opencode|gemini|qwen|copilot|reasonix|cline|crush",
     .optional = true,
     .many = true}};

constexpr std::string_view kInstallUsage[] = {
    "install AGENT... [--project] [--dry-run] [--trust] [--follow-links]",
    "install --list [AGENT...]"};
constexpr FlagSpec kInstallFlags[] = {
    {.name = "--project", .help = "for this project only"},
    {.name = "--dry-run", .help = "show what would be written, and write nothing"},
    {.name = "--follow-links",
     .help = "where a settings file is a symlink, change the file it leads to"},
    {.name = "--trust",
     .help = "also tell Codex that its hooks may run, which it would ask about"},
    {.name = "--list", .help = "the agents Belay knows, and which are connected"},
};
constexpr Example kInstallExamples[] = {
    {"belay install claude codex", "checkpoints before and after what they do"},
    {"belay install gemini --dry-run", "what would change, as a diff"},
    {"belay install claude --project", "in this project alone"},
    {"belay install --list", "which are there, connected, and heard of"}};

constexpr std::string_view kUninstallUsage[] = {
    "uninstall AGENT... [--project] [--dry-run]"};
constexpr FlagSpec kUninstallFlags[] = {
    {.name = "--project", .help = "what was installed for this project"},
    {.name = "--dry-run", .help = "show what would be written, and write nothing"},
};
constexpr Example kUninstallExamples[] = {
    {"belay uninstall codex", "take Belay's hooks out again"}};

constexpr std::string_view kHookUsage[] = {"hook AGENT|generic [EVENT]"};
constexpr PositionalSpec kHookArgs[] = {{.name = "AGENT"},
                                        {.name = "EVENT", .optional = true}};
constexpr Example kHookExamples[] = {
    {"belay hook claude < event.json", "what the installed hooks run"}};

constexpr std::string_view kRunUsage[] = {"run [--name NAME] -- COMMAND..."};
constexpr FlagSpec kRunFlags[] = {
    {.name = "--name", .value = "NAME", .help = "a name for the checkpoint before"}};
constexpr Example kRunExamples[] = {
    {"belay run -- ./migrate.sh", "a checkpoint before and after any program"}};

constexpr std::string_view kEventsUsage[] = {"events [--follow] [--since ID] [--all]"};
constexpr FlagSpec kEventsFlags[] = {
    {.name = "--follow", .help = "wait for more"},
    {.name = "--since", .value = "ID", .help = "only what came after this event"},
    {.name = "--all", .help = "of all protected directories"},
};
constexpr Example kEventsExamples[] = {
    {"belay events --follow", "what happens, a JSON object a line"}};

constexpr std::string_view kServeUsage[] = {"serve [--listen 127.0.0.1:PORT] [--open]"};
constexpr FlagSpec kServeFlags[] = {
    {.name = "--listen", .value = "ADDRESS", .help = "where, as 127.0.0.1:PORT"},
    {.name = "--open", .help = "open the page"},
};
constexpr Example kServeExamples[] = {
    {"belay serve --open", "the timeline in a browser"}};

constexpr std::string_view kUiUsage[] = {"ui"};
constexpr Example kUiExamples[] = {{"belay ui", "open the page"}};
constexpr std::string_view kPickUsage[] = {"pick"};
constexpr Example kPickExamples[] = {
    {"belay pick", "choose a checkpoint with the keys"}};
constexpr std::string_view kDemoUsage[] = {"demo"};
constexpr Example kDemoExamples[] = {
    {"belay demo", "watch it work on a project made for the purpose"}};

constexpr CommandSpec kAgentCommands[] = {
    {.name = "install",
     .summary = "connect coding agents",
     .usage = kInstallUsage,
     .about =
         "Agents: claude codex opencode gemini qwen copilot reasonix cline crush. "
         "(goose and hermes are set up by hand: docs/hooks.md.)\n\n"
         "Puts hooks into the agent's own settings that run `belay hook`, for all you "
         "do or, with --project, for one project. Order, comments and everything else "
         "in the settings stay as they are; settings that make no sense, are read-only "
         "or not a file of yours are left alone, and that is said. Running it again "
         "puts older entries right and otherwise changes nothing.\n\n"
         "Where the agent has commands of one's own (claude, opencode, gemini, qwen) "
         "/rollback is added: it lists, /rollback N shows what would be done, "
         "/rollback N yes does it.\n\n"
         "Codex runs hooks only once they are trusted: enter /hooks in codex, or give "
         "--trust.\n\n"
         "Hooks record in protected directories only: belay on, or belay config auto "
         "true. What is covered per agent: docs/hooks.md.",
     .flags = kInstallFlags,
     .args = kAgents,
     .examples = kInstallExamples,
     .run = CmdInstall},
    {.name = "uninstall",
     .summary = "disconnect coding agents",
     .usage = kUninstallUsage,
     .about =
         "Takes out what `belay install` wrote. A file that nobody has changed since "
         "is "
         "afterwards what it was before, byte for byte, or gone if it was not there; "
         "of one that was changed only what is Belay's goes.",
     .flags = kUninstallFlags,
     .args = kAgents,
     .examples = kUninstallExamples,
     .run = CmdUninstall},
    {.name = "hook",
     .summary = "take one event from an agent",
     .usage = kHookUsage,
     .about =
         "Reads one hook event from standard input. Exits 0 whatever happens, unless "
         "the setting strict is true: a failing checkpoint does not stop an agent.",
     .args = kHookArgs,
     .examples = kHookExamples,
     .run = CmdHook},
    {.name = "run",
     .summary = "run a program between two checkpoints",
     .usage = kRunUsage,
     .about = "Makes a checkpoint, runs the program, makes another, and exits with the "
              "program's exit code.",
     .flags = kRunFlags,
     .rest = "COMMAND",
     .examples = kRunExamples,
     .run = CmdRun},
    {.name = "events",
     .summary = "the event log",
     .usage = kEventsUsage,
     .about = "Prints a JSON object a line: what happened, to which directory, and ids "
              "to ask for more by.",
     .flags = kEventsFlags,
     .examples = kEventsExamples,
     .run = CmdEvents},
    {.name = "serve",
     .summary = "run the daemon",
     .usage = kServeUsage,
     .about = "Serves the API and the page, to this machine only.",
     .flags = kServeFlags,
     .examples = kServeExamples},
    {.name = "ui",
     .summary = "open the page",
     .usage = kUiUsage,
     .about = "Opens the page of the daemon, which is started when needed.",
     .examples = kUiExamples},
    {.name = "pick",
     .summary = "choose a checkpoint in the terminal",
     .usage = kPickUsage,
     .about = "The timeline, with preview and rollback by the keys.",
     .examples = kPickExamples},
    {.name = "demo",
     .summary = "watch Belay work",
     .usage = kDemoUsage,
     .about = "Does the main job on a scratch project. Nothing of yours is touched.",
     .examples = kDemoExamples,
     .run = CmdDemo},
};

}  // namespace

std::span<const CommandSpec> ConversationCommands() { return kConversations; }
std::span<const CommandSpec> InvestigateCommands() { return kInvestigate; }
std::span<const CommandSpec> AgentCommands() { return kAgentCommands; }

}  // namespace belay
