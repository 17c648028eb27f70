// What a decision of the rules costs.
//
//   bench/ignore [--rounds N]
//
// A project's tree of source-like names, every entry asked once per round, under
// stacks of rules as people have them. The quickest of the rounds, one thread: nothing
// here waits, so what is slower was somebody else's work.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/clock.h"
#include "ignore/rules.h"

namespace belay {
namespace {

// What a project with some JavaScript, Python and C in it ignores: 60 patterns.
const char kProject[] = R"(# dependencies
node_modules/
.pnp
.pnp.js
jspm_packages/
bower_components
web_modules/
# logs
logs
*.log
npm-debug.log*
yarn-debug.log*
yarn-error.log*
lerna-debug.log*
report.[0-9]*.[0-9]*.[0-9]*.[0-9]*.json
pids
*.pid
*.seed
*.pid.lock
# coverage
lib-cov
coverage
*.lcov
.nyc_output
.grunt
.lock-wscript
build/Release
# caches
*.tsbuildinfo
.npm
.eslintcache
.stylelintcache
.cache
.parcel-cache
.next
out
.nuxt
dist
.vuepress/dist
.temp
.docusaurus
.serverless/
.vscode-test
.yarn/cache
.yarn/unplugged
.yarn/build-state.yml
.yarn/install-state.gz
.pnp.*
# python
__pycache__/
*.py[cod]
*$py.class
*.egg-info/
.pytest_cache/
.venv/
/docs/_build/
# c
*.o
*.a
*.so
*.so.*
/cmake-build-*/
compile_commands.json
**/generated/*.inc
!third_party/**/*.a
/tools/**/tmp
!.vscode/settings.json
)";
const char kGlobal[] = "*~\n.DS_Store\n*.swp\n.idea/\n*.orig\nThumbs.db\n";

const std::vector<std::string> kSecrets = {".env",
                                           ".env.*",
                                           "*.pem",
                                           "*.key",
                                           "id_rsa*",
                                           "id_dsa*",
                                           "id_ecdsa*",
                                           "id_ed25519*",
                                           "*.p12",
                                           "*.pfx",
                                           "*.jks",
                                           "*.keystore",
                                           "*.kdbx",
                                           ".netrc",
                                           ".pgpass",
                                           ".htpasswd",
                                           ".npmrc",
                                           ".pypirc",
                                           ".git-credentials",
                                           "*.tfvars",
                                           "credentials.json",
                                           "service-account*.json"};

struct Directory {
  std::vector<std::string> names;  // files
  DirRules::Ptr rules;
};

double Nanos() { return static_cast<double>(RealClock().SteadyNanos()); }

template <class F>
double QuickestPerCall(int rounds, size_t calls, F work) {
  std::vector<double> took;
  for (int i = 0; i < rounds; ++i) {
    const double start = Nanos();
    work();
    took.push_back((Nanos() - start) / static_cast<double>(calls));
  }
  return *std::min_element(took.begin(), took.end());
}

std::vector<std::string> Names(size_t seed) {
  static const char* const kStems[] = {"index",  "user_service", "main",  "README",
                                       "Button", "test_models",  "utils", "package",
                                       "server", "http_client",  "conf",  "Makefile"};
  static const char* const kEnds[] = {".ts", ".tsx",  ".py",  ".c",  ".h",  ".md",
                                      "",    ".json", ".css", ".go", ".cc", ".yml"};
  std::vector<std::string> names;
  for (size_t i = 0; i < 12; ++i)
    names.push_back(kStems[(i + seed) % 12] + std::to_string(seed % 7) +
                    kEnds[(i * 5 + seed * 3) % 12]);
  return names;
}

void Measure(const char* what, int rounds, RuleLists lists, WorkTreeInput input,
             std::string_view gitignore) {
  const DirRules::Ptr root =
      DirRules::Root(std::make_shared<RuleConfig>(std::move(lists)),
                     std::make_shared<WorkTree>(std::move(input)),
                     {.gitignore = gitignore, .belayignore = std::nullopt});
  std::vector<Directory> tree;
  std::vector<std::string> dirs;
  for (size_t a = 0; a < 10; ++a)
    for (size_t b = 0; b < 20; ++b) {
      DirRules::Ptr at = root->Enter("packages" + std::to_string(a), {});
      at = at->Enter("src", {})->Enter("module_" + std::to_string(b), {});
      tree.push_back({Names(a * 20 + b), at});
      dirs.push_back("module_" + std::to_string(b));
    }
  size_t files = 0;
  for (const Directory& d : tree) files += d.names.size();
  size_t covered = 0;
  const double file = QuickestPerCall(rounds, files, [&] {
    covered = 0;
    for (const Directory& d : tree)
      for (const std::string& name : d.names)
        covered += d.rules->Decide(name, false).covered;
  });
  const double dir = QuickestPerCall(rounds, tree.size(), [&] {
    for (size_t i = 0; i < tree.size(); ++i) tree[i].rules->Decide(dirs[i], true);
  });
  const double enter = QuickestPerCall(rounds, tree.size(), [&] {
    for (size_t i = 0; i < tree.size(); ++i) tree[i].rules->Enter(dirs[i], {});
  });
  std::printf(
      "%-52s %5.0f ns a file  %5.0f ns a directory  %5.0f ns to enter  "
      "(%zu of %zu covered)\n",
      what, file, dir, enter, covered, files);
}

int Main(int argc, char** argv) {
  int rounds = 200;
  if (argc == 3 && std::strcmp(argv[1], "--rounds") == 0) rounds = std::atoi(argv[2]);
  RuleLists nothing;
  nothing.default_excludes = false;
  RuleLists ours;
  ours.secret_patterns = kSecrets;
  WorkTreeInput global;
  global.global_excludes = RuleBytes{"global", kGlobal};
  std::string many;
  for (int i = 0; i < 70; ++i) {
    many += "/generated/path" + std::to_string(i) + "/\n";
    many += "*.ext" + std::to_string(i) + "\n";
    many += "name" + std::to_string(i) + "\n";
  }
  Measure("no rules", rounds, nothing, {}, "");
  Measure("defaults and secrets", rounds, ours, {}, "");
  Measure("the same, 60 patterns of a project, 6 global", rounds, ours, global,
          kProject);
  Measure("60 patterns and 6 global alone", rounds, nothing, global, kProject);
  Measure("210 patterns more", rounds, ours, global, many + kProject);
  RuleLists protect = ours;
  protect.protect = {"/data/*.db", "*.sqlite"};
  protect.exclude = {"*.mp4", "/scratch/"};
  Measure("60, 6, protect and exclude", rounds, protect, global, kProject);
  return 0;
}

}  // namespace
}  // namespace belay

int main(int argc, char** argv) { return belay::Main(argc, argv); }
