#pragma once

// A recorded conversation of a real agent beside a project (talk_dir.h), known to the
// log by its hooks, and taken back before its second turn. Of agents that keep a file
// (Claude Code) or a directory (Copilot CLI).
//
// The copy has the same id each time, whatever the world's random numbers are.

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "agent/rewind.h"
#include "support/restore_world.h"
#include "support/talk_dir.h"

namespace belay::test {

class RecordedChat {
 public:
  explicit RecordedChat(AgentKind agent) : agent_(agent) {
    const std::string name(AgentName(agent));
    std::ifstream file(std::string(std::getenv("BELAY_SOURCE_DIR")) +
                       "/tests/agent/data/transcripts/" + name + ".jsonl");
    text_ = std::string((std::istreambuf_iterator<char>(file)), {});
  }

  // The file, and what hooks would have recorded of it.
  Status Tell(RestoreWorld& world) const {
    const AbsPath at = PathIn(world);
    BELAY_TRY(Fd dir, MakeDirs(world.fs(), at.parent(), 0700));
    const RelPath name = P(at.bytes().substr(at.bytes().rfind('/') + 1));
    BELAY_OK(PutFile(world.fs(), dir, name, text_, 0640));
    if (agent_ == AgentKind::kCopilot)
      BELAY_OK(PutFile(world.fs(), dir, P("workspace.yaml"), "id: old\n", 0600));
    BELAY_TRY(const Transcript read, ReadTranscript(world.fs(), agent_, at));
    BELAY_TRY(auto opened, world.Open());
    BELAY_TRY(auto writer, opened.store->Begin());
    auto id = [&] { return RecordId(opened.store->random().NewId()); };
    writer->Add(ToRecord(SessionRecord{.session = read.session,
                                       .agent = std::string(AgentName(agent_)),
                                       .transcript_path = at.bytes(),
                                       .cwd = world.project.bytes()},
                         id(), opened.root.id, 5));
    for (const TranscriptPrompt& prompt : read.prompts)
      writer->Add(ToRecord(TurnRecord{.session = read.session,
                                      .turn = prompt.index + 1,
                                      .prompt = prompt.text,
                                      .anchor = prompt.anchor},
                           id(), opened.root.id, 5));
    BELAY_TRY([[maybe_unused]] auto published, writer->Commit());
    return Ok();
  }

  // What takes it back; holds what it reads from.
  Result<std::shared_ptr<const ChatPlan>> Plan(RestoreWorld& world) const {
    struct Held {
      Held(RestoreWorld& of)
          : world(of.fs(), of.project.parent(), 4711, of.world.options.uid) {}
      RestoreWorld world;
      RestoreWorld::Opened opened;
      RewindPlan plan;
    };
    auto held = std::make_shared<Held>(world);
    BELAY_TRY(held->opened, held->world.Open());
    BELAY_TRY(const Transcript read, ReadTranscript(world.fs(), agent_, PathIn(world)));
    BELAY_TRY(held->plan, PlanRewind(*held->opened.store, *held->opened.catalog,
                                     {.session = read.session,
                                      .turn = 2,
                                      .settings = &held->world.settings,
                                      .root = world.project}));
    return std::shared_ptr<const ChatPlan>(held, &held->plan.chat);
  }

 private:
  AbsPath PathIn(RestoreWorld& world) const {
    return TalkDir(world.project.parent())
        .Join(P(agent_ == AgentKind::kCopilot ? "old/events.jsonl" : "old.jsonl"));
  }
  const AgentKind agent_;
  std::string text_;
};

}  // namespace belay::test
