// Chunks, nodes, states, checkpoints and annotations that are wrong.

#include "bundle/hostile_rows.h"

namespace belay::test {
namespace {

const Row kStateRows[] = {
    // --- chunks
    {"a chunk that is not there",
     [](Parts& p) {
       const ObjectId gone = Sha256::Of(AsBytes("gone"));
       std::vector<Chunk> chunks(5, {gone, 500'000});
       const ObjectId id =
           p.PutAs(ObjectType::kChunks, gone, RawChunks(2'500'000, chunks));
       p.Around({p.File("f", id, 2'500'000)}, 1, 2'500'000);
     },
     "chunk is missing"},
    {"a chunk of another length",
     [](Parts& p) {
       const ObjectId blob = p.Blob(Zeros(500'000));
       std::vector<Chunk> chunks(5, {blob, 500'001});
       const ObjectId id = p.PutAs(ObjectType::kChunks, Sha256::Of(AsBytes("x")),
                                   RawChunks(2'500'005, chunks));
       p.Around({p.File("f", id, 2'500'005)}, 1, 2'500'005);
     },
     "length is a lie"},
    // Kills the mutant bundle-trusts-chunks.
    {"chunks of another content",
     [](Parts& p) {
       const ObjectId blob = p.Blob(Zeros(500'000));
       std::vector<Chunk> chunks(5, {blob, 500'000});
       const ObjectId id = p.PutAs(ObjectType::kChunks, Sha256::Of(AsBytes("other")),
                                   RawChunks(2'500'000, chunks));
       p.Around({p.File("f", id, 2'500'000)}, 1, 2'500'000);
     },
     "hash does not match"},
    {"chunks of what needs none",
     [](Parts& p) {
       const ObjectId blob = p.Blob("hello");
       const ObjectId id =
           p.PutAs(ObjectType::kChunks, blob, RawChunks(5, {{blob, 5}}));
       p.Around({p.File("f", id, 5)});
     },
     "needs none"},
    {"a chunk that is too long",
     [](Parts& p) {
       const ObjectId blob = p.Blob(Zeros(600'000));
       const ObjectId id =
           p.PutAs(ObjectType::kChunks, blob,
                   RawChunks(1'200'000, {{blob, 600'000}, {blob, 600'000}}));
       p.Around({p.File("f", id, 1'200'000)}, 1, 1'200'000);
     },
     "length that cannot be"},
    {"chunks that do not add up",
     [](Parts& p) {
       const ObjectId blob = p.Blob(Zeros(500'000));
       std::vector<Chunk> chunks(5, {blob, 500'000});
       const ObjectId id = p.PutAs(ObjectType::kChunks, Sha256::Of(AsBytes("x")),
                                   RawChunks(uint64_t{1} << 50, chunks));
       p.Around({p.File("f", id, uint64_t{1} << 50)}, 1, uint64_t{1} << 50);
     },
     "do not add up"},
    {"a list of chunks that is not checked",
     [](Parts& p) {
       const ObjectId blob = p.Blob(Zeros(500'000));
       Bytes raw = RawChunks(2'500'000, std::vector<Chunk>(5, {blob, 500'000}));
       raw.back() ^= std::byte{1};
       const ObjectId id = p.PutAs(ObjectType::kChunks, Sha256::Of(AsBytes("x")), raw);
       p.Around({p.File("f", id, 2'500'000)}, 1, 2'500'000);
     },
     "check does not match"},
    {"half a megabyte, 100,000 times",
     [](Parts& p) {
       const ObjectId blob = p.Blob(Zeros(500'000));
       std::vector<Chunk> chunks(100'000, {blob, 500'000});
       const ObjectId id = p.PutAs(ObjectType::kChunks, Sha256::Of(AsBytes("x")),
                                   RawChunks(50'000'000'000, chunks));
       p.Around({p.File("f", id, 50'000'000'000)}, 1, 50'000'000'000);
     },
     "claims to hold more"},

    // --- nodes and states
    {"a node that refers to nothing that is there",
     [](Parts& p) {
       Node node = GoodRules();
       node.refs.push_back({ObjectType::kBlob, Sha256::Of(AsBytes("gone"))});
       p.Rules(node);
     },
     "missing"},
    {"a node that refers to a tree",
     [](Parts& p) {
       Node node = GoodRules();
       node.refs.push_back({ObjectType::kTree, p.Tree({})});
       p.Rules(node);
     },
     "may not"},
    {"a node that refers to an unknown type",
     [](Parts& p) {
       Node node = GoodRules();
       node.refs.push_back({ObjectType{9}, p.Hello()});
       p.Rules(node);
     },
     "may not"},
    {"a node that claims 2^60 references",
     [](Parts& p) {
       Bytes raw;
       ByteWriter w(raw);
       w.U8(1);
       w.Varint(uint64_t{1} << 60);
       const ObjectId rules = p.Put(ObjectType::kNode, raw);
       p.Log(p.CheckpointRecord(p.State(p.Tree({}), rules), 0, 0));
     },
     "impossible count"},
    {"a node of another version",
     [](Parts& p) {
       Bytes raw = EncodeNode(GoodRules());
       raw[0] = std::byte{2};
       const ObjectId rules = p.Put(ObjectType::kNode, raw);
       p.Log(p.CheckpointRecord(p.State(p.Tree({}), rules), 0, 0));
     },
     "unknown version"},
    {"fields whose tags fall",
     [](Parts& p) {
       const ObjectId rules =
           p.Put(ObjectType::kNode, AsBytes(std::string_view("\1\0\2\0\1\0", 6)));
       p.Log(p.CheckpointRecord(p.State(p.Tree({}), rules), 0, 0));
     },
     "do not rise"},
    {"rules that say nothing", [](Parts& p) { p.Rules(Node()); }, "makes no sense"},
    {"rules that leave out ../x",
     [](Parts& p) {
       Node node = GoodRules();
       Fields skipped = Nested({{1, "../x"}});
       skipped.AddNumber(2, 10);
       node.fields.AddNested(11, skipped);
       p.Rules(node);
     },
     "makes no sense"},
    {"rules about a root at /abs",
     [](Parts& p) {
       Node node = GoodRules();
       node.fields.Add(12, std::string_view("/abs"));
       p.Rules(node);
     },
     "makes no sense"},
    {"rules whose file is not kept",
     [](Parts& p) {
       Node node = GoodRules();
       const ObjectId file = p.Blob("*.o\n");
       node.fields.AddNested(
           10, Nested({{1, "a/.gitignore"}, {2, std::string(AsText(file.span()))}}));
       p.Rules(node);
     },
     "does not keep"},
    {"rules that name a megabyte 200 times",
     [](Parts& p) {
       Node node = GoodRules();
       const ObjectId file = p.Blob(Zeros(1 << 20));
       node.refs.push_back({ObjectType::kBlob, file});
       for (int i = 0; i < 200; ++i)
         node.fields.AddNested(10, Nested({{1, "d" + std::to_string(i)},
                                           {2, std::string(AsText(file.span()))}}));
       p.Rules(node);
     },
     "too long"},
    {"a state whose tree is not there",
     [](Parts& p) {
       p.Log(p.CheckpointRecord(p.State(Sha256::Of(AsBytes("gone"))), 0, 0));
     },
     "tree is missing"},
    {"a state without a tree",
     [](Parts& p) { p.Log(p.CheckpointRecord(p.State(ObjectId()), 0, 0)); }, "no tree"},
    {"a state whose rules are not there",
     [](Parts& p) {
       p.Log(
           p.CheckpointRecord(p.State(p.Tree({}), Sha256::Of(AsBytes("gone"))), 0, 0));
     },
     "rules are missing"},
    {"a state with a git record",
     [](Parts& p) {
       const ObjectId git = p.Put(ObjectType::kNode, EncodeNode(Node()));
       p.Log(p.CheckpointRecord(p.State(p.Tree({}), {}, git), 0, 0));
     },
     "of another machine"},
    {"a state that is cut short",
     [](Parts& p) {
       Bytes raw = EncodeState({.tree = p.Tree({}), .git = {}, .rules = {}});
       raw.pop_back();
       p.Log(p.CheckpointRecord(p.Put(ObjectType::kState, raw), 0, 0));
     },
     "wrong length"},

    // --- checkpoints
    {"a sequence number of its own",
     [](Parts& p) {
       LogRecord r = p.Whole();
       r.seq = 1;
       p.Log(r);
     },
     "place of its own"},
    {"a root of its own",
     [](Parts& p) {
       LogRecord r = p.Whole();
       r.root.bytes[0] = std::byte{1};
       p.Log(r);
     },
     "place of its own"},
    {"no id",
     [](Parts& p) {
       LogRecord r = p.Whole();
       r.id = RecordId();
       p.Log(r);
     },
     "place of its own"},
    {"no state",
     [](Parts& p) {
       LogRecord r = p.Whole();
       r.refs.clear();
       p.Log(r);
     },
     "something else than a state"},
    {"two states",
     [](Parts& p) {
       LogRecord r = p.Whole();
       r.refs.push_back(r.refs[0]);
       p.Log(r);
     },
     "something else than a state"},
    {"a state that is not there",
     [](Parts& p) {
       LogRecord r = p.Whole();
       r.refs[0].id = Sha256::Of(AsBytes("gone"));
       p.Log(r);
     },
     "state is missing"},
    {"made before 1970",
     [](Parts& p) {
       LogRecord r = p.Whole();
       r.made_ms = -1;
       p.Log(r);
     },
     "time that cannot be"},
    {"made in a million years",
     [](Parts& p) {
       LogRecord r = p.Whole();
       r.made_ms = INT64_MAX;
       p.Log(r);
     },
     "time that cannot be"},
    {"called latest",
     [](Parts& p) {
       Checkpoint c = Must(ToCheckpoint(p.Whole()));
       c.name = "latest";
       p.Log(ToRecord(c));
     },
     "meaning of their own"},
    {"called 17",
     [](Parts& p) {
       Checkpoint c = Must(ToCheckpoint(p.Whole()));
       c.name = "17";
       p.Log(ToRecord(c));
     },
     "digits alone"},
    // Kills the mutant bundle-brings-external-files.
    {"files outside of the directory",
     [](Parts& p) {
       Checkpoint c = Must(ToCheckpoint(p.Whole()));
       c.external = {{.path = "/home/you/.bashrc"}};
       p.Log(ToRecord(c));
     },
     "files outside of the directory"},
    {"an unknown kind of checkpoint",
     [](Parts& p) {
       Checkpoint c = Must(ToCheckpoint(p.Whole()));
       c.kind = CheckpointKind{9};
       p.Log(ToRecord(c));
     },
     "unknown kind"},
    {"from nowhere",
     [](Parts& p) {
       Checkpoint c = Must(ToCheckpoint(p.Whole()));
       c.meta.clear();
       p.Log(ToRecord(c));
     },
     "where it comes from"},
    {"the number of where it comes from is a word",
     [](Parts& p) {
       Checkpoint c = Must(ToCheckpoint(p.Whole()));
       c.meta["origin.seq"] = "12x";
       p.Log(ToRecord(c));
     },
     "where it comes from"},
    {"more files than it has",
     [](Parts& p) {
       Checkpoint c = Must(ToCheckpoint(p.Whole()));
       c.files = 2;
       p.Log(ToRecord(c));
     },
     "size it claims is a lie"},
    {"more bytes than it has",
     [](Parts& p) {
       Checkpoint c = Must(ToCheckpoint(p.Whole()));
       c.bytes = UINT64_MAX;
       p.Log(ToRecord(c));
     },
     "size it claims is a lie"},
    {"a thousand and one meta",
     [](Parts& p) {
       Checkpoint c = Must(ToCheckpoint(p.Whole()));
       for (int i = 0; i < 1001; ++i) c.meta[std::to_string(i)] = "";
       p.Log(ToRecord(c));
     },
     "too much meta"},
    {"the same checkpoint twice",
     [](Parts& p) {
       const LogRecord r = p.Whole();
       p.Log(r);
       p.Log(r);
     },
     "there twice"},
    {"a record that is cut short",
     [](Parts& p) {
       Bytes raw = EncodeLogRecord(p.Whole());
       raw.resize(60);
       p.Put(ObjectType::kLog, raw);
     },
     "record"},
    {"a record that claims 2^60 references",
     [](Parts& p) {
       LogRecord r = p.Whole();
       r.refs.clear();
       r.fields = {};
       Bytes raw = EncodeLogRecord(r);
       raw.pop_back();
       ByteWriter(raw).Varint(uint64_t{1} << 60);
       p.Put(ObjectType::kLog, raw);
     },
     "impossible reference count"},
    {"a root record",
     [](Parts& p) {
       p.Good();
       p.Log(ToRecord(Root{.id = {}, .path = "/"}, RecordId(), 0));
     },
     "kind of record"},
    {"an operation",
     [](Parts& p) {
       p.Good();
       LogRecord r;
       r.kind = RecordKind::kOperation;
       p.Log(r);
     },
     "kind of record"},
    {"a drop of what is here",
     [](Parts& p) {
       p.Good();
       p.Log(MakeDrop(RecordId(), 0, {RecordId()}));
     },
     "kind of record"},
    {"a purge of what is here",
     [](Parts& p) {
       p.Good();
       p.Log(MakePurge(RecordId(), 0, {}, "mine"));
     },
     "kind of record"},

    // --- annotations
    {"an annotation before any checkpoint",
     [](Parts& p) {
       LogRecord r;
       r.kind = RecordKind::kAnnotation;
       p.Log(r);
     },
     "about nothing here"},
    {"an annotation of something else",
     [](Parts& p) {
       p.Good();
       LogRecord r;
       r.kind = RecordKind::kAnnotation;
       r.fields.Add(1, RecordId().span());
       r.fields.AddNumber(4, 1);
       p.Log(r);
     },
     "about nothing here"},
    {"two annotations",
     [](Parts& p) {
       const LogRecord c = p.Whole();
       p.Log(c);
       LogRecord r;
       r.kind = RecordKind::kAnnotation;
       r.fields.Add(1, c.id.span());
       r.fields.AddNumber(4, 1);
       p.Log(r);
       p.Log(r);
     },
     "about nothing here"},
    {"an annotation that says nothing",
     [](Parts& p) {
       const LogRecord c = p.Whole();
       p.Log(c);
       LogRecord r;
       r.kind = RecordKind::kAnnotation;
       r.fields.Add(1, c.id.span());
       p.Log(r);
     },
     "says nothing"},
    {"an annotation with a name",
     [](Parts& p) {
       const LogRecord c = p.Whole();
       p.Log(c);
       LogRecord r;
       r.kind = RecordKind::kAnnotation;
       r.fields.Add(1, c.id.span());
       r.fields.Add(2, std::string_view("latest"));
       p.Log(r);
     },
     "cannot be"},
    {"an annotation that keeps something alive",
     [](Parts& p) {
       const LogRecord c = p.Whole();
       p.Log(c);
       LogRecord r;
       r.kind = RecordKind::kAnnotation;
       r.fields.Add(1, c.id.span());
       r.fields.AddNumber(4, 1);
       r.refs = c.refs;
       p.Log(r);
     },
     "about nothing here"},
};

}  // namespace

std::span<const Row> RowsOfStates() { return kStateRows; }

}  // namespace belay::test
