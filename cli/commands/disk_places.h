// Where the model files of a session are on their disk: asked from the kernel, or given.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/disk/blkparse.h"
#include "analysis/disk/file_extents.h"
#include "tracer/format/model/session.h"

namespace tt::cli {

struct DiskPlaceOptions {
  std::string extents;                           // a list by filefrag -v; empty: ask the kernel
  std::optional<std::uint64_t> partition_start;  // sectors; nullopt: ask the kernel
};

struct DiskPlaces {
  ExtentMap extents;
  // The disks that can have the files: their partition, and the whole disk.
  std::vector<DiskId> disks;
};

// The error is a message.
std::expected<DiskPlaces, std::string> find_disk_places(std::span<const ModelFile> files,
                                                        const DiskPlaceOptions& options);

}  // namespace tt::cli
