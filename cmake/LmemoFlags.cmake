# lmemo_flags: how our own code is compiled. Linked privately, so nothing of it reaches third-party code.
# -march=native never appears: what is built here must run elsewhere (per-ISA files: cmake/LmemoRooms.cmake).

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release or Debug" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")  # NDEBUG is decided below, by LMEMO_ASSERTS.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(lmemo_flags INTERFACE)
target_compile_options(lmemo_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  # These look through inlined std::string and std::variant and warn of what cannot happen (GCC bug 105651 and kin).
  # clang and the sanitizers watch over the same mistakes.
  target_compile_options(lmemo_flags INTERFACE -Wno-restrict -Wno-maybe-uninitialized -Wno-array-bounds
                                               -Wno-stringop-overflow -Wno-stringop-overread)
endif()
if(LMEMO_WERROR)
  target_compile_options(lmemo_flags INTERFACE -Werror)
endif()
if(NOT LMEMO_ASSERTS)
  target_compile_definitions(lmemo_flags INTERFACE NDEBUG)
endif()

# Sanitizers reach every target: a half-instrumented program reports nonsense.
if(LMEMO_SANITIZE)
  string(REPLACE ";" "," sanitizers "${LMEMO_SANITIZE}")
  add_compile_options(-fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${sanitizers})
endif()
if(LMEMO_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "LMEMO_FUZZ needs clang (libFuzzer): configure with -DCMAKE_CXX_COMPILER=clang++-19")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
