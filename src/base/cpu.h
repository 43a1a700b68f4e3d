// Which of the two ways of our own code this machine takes. Asked by every dispatcher, so that `lmemo --version` says
// what really runs. Files named *_avx2.cpp are compiled for it (cmake/LmemoRooms.cmake).
#pragma once

#include <string_view>

namespace lmemo {

inline bool cpu_has_avx2() {
#if defined(__x86_64__)
  // With all that *_avx2.cpp are compiled for (cmake/LmemoRooms.cmake).
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("lzcnt") && __builtin_cpu_supports("popcnt");
#else
  return false;
#endif
}

inline std::string_view cpu_path_name() { return cpu_has_avx2() ? "avx2" : "portable"; }

}  // namespace lmemo
