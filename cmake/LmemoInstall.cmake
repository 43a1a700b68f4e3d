# `cmake --install`: the command with its manual page and completions, and for C++ one library, the public headers and
# a package that find_package(lmemo) finds (tests/house/consumer/ is a program that does).
#
# The rooms are libraries of the build only; who links lmemo gets their objects in one archive.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(installed_rooms base codec stats store tokenizer sources packing faces)
add_library(lmemo_library STATIC)
foreach(room IN LISTS installed_rooms)
  get_target_property(kind lmemo_${room} TYPE)
  if(kind STREQUAL "STATIC_LIBRARY")
    target_sources(lmemo_library PRIVATE $<TARGET_OBJECTS:lmemo_${room}>)
  endif()
endforeach()
set_target_properties(lmemo_library PROPERTIES OUTPUT_NAME lmemo EXPORT_NAME lmemo LINKER_LANGUAGE CXX)
target_compile_features(lmemo_library INTERFACE cxx_std_20)
target_include_directories(lmemo_library INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

set(installed_modules "")
# What the archive needs from the system; header-only libraries are compiled in.
foreach(row IN LISTS LMEMO_DEP_TABLE)
  string(REPLACE "|" ";" row "${row}")
  list(GET row 0 name)
  list(GET row 3 module)
  if(TARGET PkgConfig::LMEMO_PC_${name} AND NOT name STREQUAL "lmdb")
    list(APPEND installed_modules ${module})
  endif()
endforeach()
string(REPLACE ";" " " LMEMO_MODULES "${installed_modules}")

install(TARGETS lmemo_library EXPORT lmemo ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" "${PROJECT_BINARY_DIR}/generated/"
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development FILES_MATCHING PATTERN "*.h")
set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/lmemo)
install(EXPORT lmemo NAMESPACE lmemo:: FILE lmemoTargets.cmake DESTINATION ${package_directory} COMPONENT development)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/lmemoConfig.cmake.in" lmemoConfig.cmake
  INSTALL_DESTINATION ${package_directory})
write_basic_package_version_file(lmemoConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/lmemoConfig.cmake" "${PROJECT_BINARY_DIR}/lmemoConfigVersion.cmake"
  DESTINATION ${package_directory} COMPONENT development)

# lmemo_install_words(COMPONENT PREFIX COMMAND...): what the command itself prints, put where man and shells look.
function(lmemo_install_words component prefix)
  foreach(row "manual|share/man/man1|lmemo.1" "completions bash|share/bash-completion/completions|lmemo"
              "completions zsh|share/zsh/site-functions|_lmemo" "completions fish|share/fish/vendor_completions.d|lmemo.fish")
    string(REPLACE "|" ";" row "${row}")
    list(GET row 0 words)
    list(GET row 1 directory)
    list(GET row 2 file)
    string(REPLACE " " ";" words "${words}")
    set(command "")
    foreach(word IN LISTS ARGN words)
      string(APPEND command " [==[${word}]==]")
    endforeach()
    set(made "${PROJECT_BINARY_DIR}/words-${component}/${file}")
    install(CODE "file(MAKE_DIRECTORY \"${PROJECT_BINARY_DIR}/words-${component}\")
execute_process(COMMAND ${command} OUTPUT_FILE [==[${made}]==] COMMAND_ERROR_IS_FATAL ANY)" COMPONENT ${component})
    install(FILES "${made}" DESTINATION "${prefix}${directory}" COMPONENT ${component})
  endforeach()
endfunction()

if(TARGET lmemo)
  lmemo_install_words(command "" $<TARGET_FILE:lmemo>)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples/corpus" "${PROJECT_SOURCE_DIR}/examples/tokenizer"
    DESTINATION share/lmemo COMPONENT command)
endif()
if(TARGET _core AND DEFINED SKBUILD_DATA_DIR)
  # In lines: CMake would cut it at semicolons.
  set(say "import sys\nsys.path.insert(0, sys.argv[1])\nimport _core\nsys.exit(_core.run_command_line(sys.argv[2:], ''))")
  lmemo_install_words(share "${SKBUILD_DATA_DIR}/" ${Python_EXECUTABLE} -c ${say} $<TARGET_FILE_DIR:_core>)
endif()
