# Jumbo files: each includes up to 16 sources of one folder, so that the compiler parses their headers once. Static names and
# names in anonymous namespaces must be unique in a folder. The preset dev and -DOCTAVO_JUMBO=OFF compile each source alone:
# a change of one file then compiles one file.
set(OCTAVO_JUMBO_FILES 16)
# Three warnings are false in jumbo files: a local name shadows a name of another source, a class looks as if a header defined
# it, and g++ 12 reports moved std::expected objects as uninitialized.
set(OCTAVO_JUMBO_FLAGS -Wno-shadow
    $<$<CXX_COMPILER_ID:GNU>:-Wshadow=local;-Wno-subobject-linkage;-Wno-maybe-uninitialized>)

# octavo_jumbo(result target folder alone file..): sets `result` to the files that the target compiles for the
# files of src/folder. Generated files stay alone, and so do files that match an expression in `alone`. A file
# with special compile options must match one.
function(octavo_jumbo result target folder alone)
  list(JOIN alone "|" alone)
  set(compiled "")
  set(ids "")
  foreach(file IN LISTS ARGN)
    if(NOT OCTAVO_JUMBO OR file MATCHES "^(${alone})$" OR NOT file MATCHES "^[a-z0-9_][a-z0-9_/]+[.]cc$")
      list(APPEND compiled ${file})
      continue()
    endif()
    cmake_path(GET file PARENT_PATH subfolder)
    string(REGEX REPLACE "/|^_+" "_" id "_${subfolder}_")
    list(APPEND ids ${id})
    list(APPEND files_${id} ${file})
  endforeach()
  list(REMOVE_DUPLICATES ids)
  foreach(id IN LISTS ids)
    set(files ${files_${id}})
    list(LENGTH files count)
    math(EXPR batches "(${count} + ${OCTAVO_JUMBO_FILES} - 1) / ${OCTAVO_JUMBO_FILES}")
    foreach(batch RANGE 1 ${batches})
      math(EXPR begin "(${batch} - 1) * ${count} / ${batches}")
      math(EXPR length "${batch} * ${count} / ${batches} - ${begin}")
      list(SUBLIST files ${begin} ${length} included)
      list(TRANSFORM included REPLACE "(.+)" "#include \"${folder}/\\1\"\n")
      list(JOIN included "" text)
      set(jumbo ${CMAKE_CURRENT_BINARY_DIR}/jumbo/${target}${id}${batch}.cc)
      file(CONFIGURE OUTPUT ${jumbo} CONTENT "${text}" @ONLY)
      set_source_files_properties(${jumbo} PROPERTIES COMPILE_OPTIONS "${OCTAVO_JUMBO_FLAGS}")
      list(APPEND compiled ${jumbo})
    endforeach()
  endforeach()
  set(${result} ${compiled} PARENT_SCOPE)
endfunction()
