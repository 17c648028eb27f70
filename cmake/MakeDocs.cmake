# Runs the program BELAY to write man pages and completions below OUT. What the
# program cannot write is left out; the package tests ask for what must be there.

file(REMOVE_RECURSE "${OUT}")
file(MAKE_DIRECTORY "${OUT}/man" "${OUT}/completions")

execute_process(COMMAND "${BELAY}" __man "${OUT}/man" RESULT_VARIABLE failed
                OUTPUT_QUIET ERROR_QUIET)
if(failed)
  message(STATUS "no man pages: belay __man failed")
endif()

foreach(pair IN ITEMS bash:belay.bash zsh:_belay fish:belay.fish)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 shell)
  list(GET pair 1 file)
  execute_process(COMMAND "${BELAY}" completions ${shell} RESULT_VARIABLE failed
                  OUTPUT_VARIABLE text ERROR_QUIET)
  if(NOT failed AND text)
    file(WRITE "${OUT}/completions/${file}" "${text}")
  else()
    message(STATUS "no ${shell} completions: belay completions ${shell} failed")
  endif()
endforeach()

file(TOUCH "${OUT}/stamp")
