#include "cli/list_graph.h"

#include <gtest/gtest.h>

#include "support/store_fixture.h"

namespace belay::test {
namespace {

// "d<c" is d, grown from c; a dash behind it: taken back.
std::vector<GraphNode> Nodes(const std::vector<std::string>& texts) {
  std::vector<GraphNode> out;
  for (const std::string& text : texts) {
    GraphNode& node = out.emplace_back();
    node.id = IdFor(text.substr(0, 1));
    if (text.size() > 2 && text[1] == '<') node.parent = IdFor(text.substr(2, 1));
    node.taken_back = text.ends_with('-');
  }
  return out;
}

std::string Draw(const std::vector<std::string>& texts, const std::string& here,
                 bool fold) {
  std::string out;
  for (const GraphLine& line : DrawGraph(Nodes(texts), IdFor(here), fold)) {
    out += line.lanes;
    if (line.here) out += " here";
    if (line.node) out += " " + texts[*line.node].substr(0, 1);
    if (line.folded > 0) out += " x" + std::to_string(line.folded);
    out += "\n";
  }
  return out;
}

TEST(Graph, OneLineIsALine) {
  EXPECT_EQ(Draw({"c<b", "b<a", "a"}, "c", true), "* c\n* b\n* a\n");
  EXPECT_TRUE(DrawGraph({}, std::nullopt, true).empty());
}

TEST(Graph, WhatWasTakenBackIsABranch) {
  EXPECT_EQ(Draw({"s<c-", "c<b-", "b<a-", "a"}, "a", false),
            "@ here\n| o s\n| o c\n| o b\n|/\n* a\n");
  EXPECT_EQ(Draw({"s<c-", "c<b-", "b<a-", "a"}, "a", true),
            "@ here\n| ~ s x3\n|/\n* a\n");
}

TEST(Graph, LaterCheckpointsGrowFromTheTarget) {
  EXPECT_EQ(Draw({"d<a", "s<b-", "b<a-", "a"}, "d", true), "* d\n| ~ s x2\n|/\n* a\n");
}

TEST(Graph, BranchesOfBranchesAndSeveralOfOne) {
  EXPECT_EQ(Draw({"f<a", "e<c-", "d<c-", "c<a-", "b<a-", "a"}, "f", false),
            "* f\n| o e\n| | o d\n| |/\n| o c\n| | o b\n|/_/\n* a\n");
}

TEST(Graph, AWideJoinIsDrawnAcross) {
  EXPECT_EQ(Draw({"g<a", "f<z-", "e<a-", "a", "z-"}, "g", false),
            "* g\n| o f\n| | o e\n|_|/\n* | a\n  o z\n");
}

}  // namespace
}  // namespace belay::test
