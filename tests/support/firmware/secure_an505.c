/* SPDX-License-Identifier: Apache-2.0 */
/* The Secure side of Arm's image AN505 (Cortex-M33): gives the Non-secure side its memories, UART0, the dual
 * timer, the interrupt and the FPU, and starts its image. Arm DAI 0505, CoreLink SSE-200 (DDI 0571: secure
 * privilege control, memory protection controllers), Armv8-M (DDI 0553: SAU, ITNS, NSACR). */
#include <arm_cmse.h>
#include <stdint.h>

#define REGISTER(address) (*(volatile uint32_t *)(address))

#define NON_SECURE_IMAGE 0x00200000u

#define SAU_CTRL REGISTER(0xE000EDD0u)
#define SAU_CTRL_ALLNS (1u << 1) /* what the IDAU says counts: bit 28 of an address */
#define NSACR REGISTER(0xE000ED8Cu)
#define NSACR_FPU (3u << 10)
#define NVIC_ITNS1 REGISTER(0xE000E384u)
#define UART0_RECEIVES (1u << 0) /* interrupt 32 */
#define VTOR_NS REGISTER(0xE002ED08u)

#define APBNSPPC0 REGISTER(0x50080070u)
#define DUAL_TIMER (1u << 2)
#define APBNSPPCEXP1 REGISTER(0x50080084u)
#define UART0 (1u << 5)

/* Memory protection controllers of the three SSRAMs. */
#define MPC_CTRL 0x000u
#define MPC_CTRL_AUTOINCREMENT (1u << 8)
#define MPC_BLK_MAX 0x010u
#define MPC_BLK_IDX 0x018u
#define MPC_BLK_LUT 0x01Cu

extern uint32_t stack_end[];
void start(void);

const uint32_t vectors[2]
    __attribute__((section(".vectors"), used)) = {(uint32_t)stack_end, (uint32_t)&start};

/* From the word `first` of its table on, which has a bit for each block. */
static void open_memory(uint32_t controller, uint32_t first)
{
    REGISTER(controller + MPC_CTRL) |= MPC_CTRL_AUTOINCREMENT;
    REGISTER(controller + MPC_BLK_IDX) = first;
    for (uint32_t i = first; i <= REGISTER(controller + MPC_BLK_MAX); i++) {
        REGISTER(controller + MPC_BLK_LUT) = 0xFFFFFFFFu;
    }
}

void start(void)
{
    const uint32_t words = REGISTER(0x58007000u + MPC_BLK_MAX) + 1u;
    open_memory(0x58007000u, words / 2u); /* the upper half of SSRAM1, of 4 MB */
    open_memory(0x58008000u, 0);
    open_memory(0x58009000u, 0);
    APBNSPPC0 = DUAL_TIMER;
    APBNSPPCEXP1 = UART0;
    NVIC_ITNS1 = UART0_RECEIVES;
    NSACR |= NSACR_FPU;
    SAU_CTRL = SAU_CTRL_ALLNS;
    const uint32_t *image = (const uint32_t *)NON_SECURE_IMAGE;
    VTOR_NS = NON_SECURE_IMAGE;
    __asm volatile("msr msp_ns, %0" ::"r"(image[0]));
    __asm volatile("dsb\n\tisb\n\tbxns %0" ::"r"(image[1] & ~1u));
}
