# Rooms: the folders of src/, each one static library, with arrows that point down only.
#
#   lmemo_room(codec USES base DEPENDS zstd lz4 xxhash)   # lmemo_codec from src/codec/**/*.cpp
#
# USES names rooms, DEPENDS third-party libraries (cmake/LmemoDeps.cmake). A room without sources is an INTERFACE
# target that passes its neighbours on, so the whole table stands from day one and looks up no library it does not
# need yet. tests/house/arrows_test.py holds every #include to the same table.

# Files named *_avx2.cpp and *_avx512.cpp are compiled for that instruction set and chosen at run time by cpuid. On
# another architecture they are compiled without the flags and guard themselves with #if.
set(LMEMO_AVX2_FLAGS -mavx2 -mbmi -mbmi2 -mlzcnt -mpopcnt)
set(LMEMO_AVX512_FLAGS -mavx512f -mavx512bw -mavx512vl -mbmi2)

function(lmemo_isa_flags)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    return()
  endif()
  foreach(source IN LISTS ARGN)
    if(source MATCHES "_avx2\\.cpp$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${LMEMO_AVX2_FLAGS}")
    elseif(source MATCHES "_avx512\\.cpp$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${LMEMO_AVX512_FLAGS}")
    endif()
  endforeach()
endfunction()

function(lmemo_room name)
  cmake_parse_arguments(PARSE_ARGV 1 room "" "" "USES;DEPENDS")
  if(room_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "lmemo_room(${name}): what is '${room_UNPARSED_ARGUMENTS}'?")
  endif()

  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${name}/*.cpp")
  list(FILTER sources EXCLUDE REGEX "/src/${name}/main/")  # Programs, not parts of the room.

  if(sources)
    add_library(lmemo_${name} STATIC ${sources})
    set(visibility PUBLIC)
    lmemo_isa_flags(${sources})
    target_link_libraries(lmemo_${name} PRIVATE lmemo_flags)
    lmemo_use_deps(lmemo_${name} PRIVATE ${room_DEPENDS})
  else()
    add_library(lmemo_${name} INTERFACE)
    set(visibility INTERFACE)
  endif()
  target_include_directories(lmemo_${name} ${visibility}
    "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include" "${PROJECT_BINARY_DIR}/generated")
  foreach(neighbour IN LISTS room_USES)
    if(NOT TARGET lmemo_${neighbour})
      message(FATAL_ERROR "lmemo_room(${name}): '${neighbour}' is not a room below it")
    endif()
    target_link_libraries(lmemo_${name} ${visibility} lmemo_${neighbour})
  endforeach()
endfunction()
