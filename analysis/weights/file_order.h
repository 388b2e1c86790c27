// What if the model files were stored in the order in which a generated token reads them? The reads
// of mapped weights are followed through the file as it is and as it could be: how many are
// sequential, how far the others jump, and which bytes are read only because they share a page or
// readahead block with what is needed. Pure functions, any thread.
//
// Sequential reads are those of sequentiality.h. Only steps of phase GENERATE count: a prompt reads
// the same weights once for all of its tokens.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "analysis/columns/enumerations.h"
#include "analysis/common/page.h"
#include "analysis/fields/declare.h"
#include "analysis/weights/sequentiality.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// Where the bytes of the model files are.
enum class FileLayout : std::uint8_t {
  Stored,  // as in the files
  // The tensors of each file in the order of their first use by generated tokens. `tt gguf reorder`
  // writes such a file.
  TensorsByUse,
  // In addition the experts of each tensor, those first that were used most. No file has this
  // order with the same bytes: the number of an expert is its place, in the rows of the router,
  // too.
  ExpertsByUse,
};
constexpr const char* to_text(FileLayout layout) {
  constexpr std::array kWords = {"stored", "tensors-by-use", "experts-by-use"};
  return kWords[static_cast<std::size_t>(layout)];
}
consteval columns::Enumeration words_of(FileLayout) {
  return columns::words_to("", FileLayout::ExpertsByUse);
}

inline constexpr std::uint64_t kPageBytes = 4096;

// The reads of all generated steps in one layout.
struct LayoutReads {
  FileLayout layout = FileLayout::Stored;
  ReadOrder order;
  std::uint64_t jumps = 0;  // reads that are not sequential, without the first one
  // Between the end of a read and the begin of the next one, of jumps within a file.
  Bytes jump_bytes{}, longest_jump{};
  // Sums over the steps; a step that needs a byte twice counts it once.
  Bytes needed{};
  // Of pages of kPageBytes and of blocks of kDefaultGap bytes, which begin at multiples of their
  // size: the bytes in those that a step touches, without the needed ones.
  Bytes page_unneeded{}, readahead_unneeded{};
  friend bool operator==(const LayoutReads&, const LayoutReads&) = default;
};

struct PlacedTensor {
  std::string tensor;
  FileRange file;                // where it is
  std::uint64_t new_offset = 0;  // with FileLayout::TensorsByUse
  friend bool operator==(const PlacedTensor&, const PlacedTensor&) = default;
};

struct FileOrder {
  std::uint64_t gap = 0;
  std::uint64_t steps = 0;           // generated steps that read a mapped file
  std::vector<LayoutReads> layouts;  // ExpertsByUse: only if experts are read
  Page<PlacedTensor> tensors;        // those that generated tokens use, in order of first use
};

// `gap`: as of sequentiality(). `page` selects rows of `tensors`.
std::expected<FileOrder, TraceError> file_order(const SessionReader& reader, std::uint64_t gap,
                                                PageRange page,
                                                const ContinueCheck& keep_going = never_cancel);

// The names of the weights that generated tokens use, in order of first use; also weights that were
// copied when the model was loaded (repacked, --no-mmap, devices). Empty if none was generated.
std::expected<std::vector<std::string>, TraceError> weights_by_use(
    const SessionReader& reader, const ContinueCheck& keep_going = never_cancel);

Fields<FileOrder> fields_of(const FileOrder*);

// For a session without such reads.
inline constexpr const char* kNoMappedReads =
    "The session has no generated token that reads a mapped model file: weights that were copied "
    "when the model was loaded (repacked, --no-mmap, on a GPU) are read from memory. Record some "
    "tokens with --no-repack.";

}  // namespace tt
