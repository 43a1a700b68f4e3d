#include "torch_tensor.h"

#include <array>
#include <memory>
#include <optional>

namespace nb = nanobind;

namespace lmemo::python {
namespace {

// As in dlpack.h, version 0: what a capsule called "dltensor" holds.
struct DlDevice {
  int32_t type = 1;  // The CPU.
  int32_t number = 0;
};
struct DlType {
  uint8_t code = 0, bits = 0;
  uint16_t lanes = 1;
};
struct DlTensor {
  void* data = nullptr;
  DlDevice device;
  int32_t dimensions = 0;
  DlType type;
  int64_t* shape = nullptr;
  int64_t* strides = nullptr;  // Null: one row after the other.
  uint64_t byte_offset = 0;
};
struct DlManagedTensor {
  DlTensor tensor;
  void* context = nullptr;
  void (*deleter)(DlManagedTensor*) = nullptr;
};

constexpr char kUnread[] = "dltensor";

DlType dl_type_of(TensorType type) {
  constexpr uint8_t kInt = 0, kUnsigned = 1, kFloat = 2, kBfloat = 4, kBool = 6;
  const auto bits = static_cast<uint8_t>(bytes_per_element(type) * 8);
  switch (type) {
    case TensorType::float16:
    case TensorType::float32:
    case TensorType::float64: return {kFloat, bits, 1};
    case TensorType::bfloat16: return {kBfloat, bits, 1};
    case TensorType::uint8: return {kUnsigned, bits, 1};
    case TensorType::boolean: return {kBool, bits, 1};
    default: return {kInt, bits, 1};
  }
}

}  // namespace

// What a tensor lies in, and lives as long as it: an entry of the store, or memory.
struct TorchTensors::Owned {
  DlManagedTensor managed;
  std::array<int64_t, 3> shape;
  std::optional<WritableHit> hit;
  std::unique_ptr<std::byte[]> memory;
};

nb::object TorchTensors::empty(const nb::object& shape, TensorType type) const {
  const nb::handle dtype = types_[nb::str(name_of(type).data())];
  PyObject* arguments[] = {shape.ptr(), dtype.ptr()};
  PyObject* made = PyObject_Vectorcall(empty_.ptr(), arguments, 1, dtype_name_.ptr());
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

nb::object TorchTensors::over(WritableHit hit, std::byte* data, TensorType type, uint64_t rows,
                              uint64_t columns) const {
  auto owned = std::make_unique<Owned>(
      Owned{{}, {1, static_cast<int64_t>(rows), static_cast<int64_t>(columns)}, std::move(hit), nullptr});
  owned->managed.tensor.data = data;
  owned->managed.tensor.dimensions = 3;
  owned->managed.tensor.type = dl_type_of(type);
  return made_of(std::move(owned));
}

nb::object TorchTensors::small(TensorType type, uint64_t rows, uint64_t columns, std::byte*& data) const {
  auto owned = std::make_unique<Owned>();
  owned->shape = {static_cast<int64_t>(rows), static_cast<int64_t>(columns), 0};
  owned->memory = std::make_unique_for_overwrite<std::byte[]>(rows * columns * bytes_per_element(type));
  data = owned->memory.get();
  owned->managed.tensor.data = data;
  owned->managed.tensor.dimensions = 2;
  owned->managed.tensor.type = dl_type_of(type);
  return made_of(std::move(owned));
}

nb::object TorchTensors::made_of(std::unique_ptr<Owned> owned) const {
  DlManagedTensor& managed = owned->managed;
  managed.tensor.shape = owned->shape.data();
  managed.context = owned.get();
  managed.deleter = [](DlManagedTensor* self) { delete static_cast<Owned*>(self->context); };
  // Whoever reads the capsule renames it and takes over.
  PyObject* capsule = PyCapsule_New(&managed, kUnread, [](PyObject* self) {
    if (!PyCapsule_IsValid(self, kUnread)) return;
    auto* unread = static_cast<DlManagedTensor*>(PyCapsule_GetPointer(self, kUnread));
    unread->deleter(unread);
  });
  if (capsule == nullptr) throw nb::python_error();
  owned.release();
  PyObject* made = PyObject_CallOneArg(from_dlpack_.ptr(), capsule);
  Py_DECREF(capsule);
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

}  // namespace lmemo::python
