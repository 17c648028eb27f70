#pragma once

// Pager: while it lives, what goes to standard output goes through a program that shows
// it page by page. Only where standard output is a terminal; otherwise nothing happens.
//
// When the program cannot be started the output comes as it is. One that ends early is
// a reader that has seen enough.

#include "cli/environment.h"
#include "cli/terminal.h"

namespace belay {

class Pager {
 public:
  Pager(Terminal& term, const Environment& env);
  ~Pager();  // waits for the person
  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;

 private:
  Terminal& term_;
  int child_ = -1;
  int saved_out_ = -1;
};

}  // namespace belay
