#pragma once

// Records that a damaged log no longer shows and the catalogue still remembers.
//
// The packs are the truth: while every part of the log can be read, what is not in it
// was never acknowledged or was collected, and nothing is lost, whatever the catalogue
// says. Only when a part cannot be read is it asked what may have stood there.

#include "store/catalog.h"
#include "store/inventory.h"

namespace belay {

// What of `remembered` the log lost, by sequence number: neither in it nor dropped. A
// record that is not `sure` counts only when it refers to nothing or the first object
// it refers to can be read: what a collection took away has left no object. `use` is
// held.
std::vector<LogRecord> LostRecords(Store& store, const LogView& log,
                                   const std::vector<RememberedRecord>& remembered);
// The same where nobody can say that the log is whole: its packs were found, not
// listed. `is_there` says of an object whether any of them holds it.
std::vector<LogRecord> LackingRecords(
    const LogView& log, const std::vector<RememberedRecord>& remembered,
    const std::function<bool(const ObjectKey&)>& is_there);

// Publishes them again as one batch, with their ids and sequence numbers. (One whose
// number another record has by now gets a new one.) May be repeated: what is there is
// not published again.
// `before` puts into the same batch what they need.
Status BringBack(Store& store, const std::vector<LogRecord>& lost,
                 const std::function<Status(BatchWriter&)>& before = {});

// Of records with one number lists show one only (catalog_internal.h): the others, as
// far as nothing shows what they say. Two histories of one store that were laid
// together have such; each record is in the log, and no bytes are missing.
std::vector<LogRecord> HiddenRecords(const LogView& log);
// Publishes those again with numbers of their own, in such an order that the copy of a
// conversation that was the latest stays that. May be repeated, as BringBack().
Status ShowHidden(Store& store, std::vector<std::string>& done);

// Roots that have checkpoints and no record: nothing leads to those any more. With the
// number of checkpoints of each.
std::map<RootId, uint64_t> RootsWithoutRecord(const LogView& log);
// Publishes a record for each: of those that `known` knows the one they had, else with
// a path that says what happened, under which they can be found and moved from. What
// was done is put behind `done`.
Status BringBackRoots(Store& store, const std::vector<Root>& known,
                      std::vector<std::string>& done);

// "checkpoint 'before lunch' (abc1234)", "the root /home/u/project", "a drop record".
std::string RecordTitle(const LogRecord& record);

}  // namespace belay
