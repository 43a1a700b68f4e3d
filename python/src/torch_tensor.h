// Memory of ours as a torch tensor, without linking torch: DLPack's structs, which never change, and torch's own reader of them.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>

#include "lmemo/activations.h"

namespace lmemo::python {

class TorchTensors {
 public:
  // torch.empty, torch's reader of DLPack capsules, and its dtypes by name.
  TorchTensors() = default;
  TorchTensors(nanobind::object empty, nanobind::object from_dlpack, nanobind::dict types)
      : empty_(std::move(empty)),
        from_dlpack_(std::move(from_dlpack)),
        types_(std::move(types)),
        dtype_name_(nanobind::make_tuple("dtype")) {}

  nanobind::object empty(const nanobind::object& shape, TensorType type) const;
  // (rows, columns) of memory of its own, to be filled at `data`: for what is small, faster than empty().
  nanobind::object small(TensorType type, uint64_t rows, uint64_t columns, std::byte*& data) const;
  // (1, rows, columns) over `data`, which `hit` keeps alive. Both are let go with the tensor, by whichever thread.
  nanobind::object over(WritableHit hit, std::byte* data, TensorType type, uint64_t rows,
                        uint64_t columns) const;

 private:
  struct Owned;
  nanobind::object made_of(std::unique_ptr<Owned> owned) const;

  nanobind::object empty_, from_dlpack_;
  nanobind::dict types_;
  nanobind::object dtype_name_;
};

}  // namespace lmemo::python
